"""Rules about how nodes of Alibaba Cloud are bought."""

from __future__ import annotations

from collections.abc import Iterator

from infra.catalog import load
from infra.checks.rule import Violation, rule
from infra.clouds.alicloud.plan.capacity import Assurance, Machines, Market, Mix, OnDemand, PrivatePool, Spot
from infra.clouds.alicloud.plan.model import AlicloudPlan
from infra.clouds.alicloud.spec.cluster import AlicloudSpec
from infra.plan.pricing import on_demand

USAGE_CLASSES: dict[type[Market], str] = {
    OnDemand: "on-demand",
    PrivatePool: "on-demand",
    Assurance: "on-demand",
    Spot: "spot",
}
BY_CONTRACT = {"sales": "the vendor's sales", "invitation": "an invitation"}
SHARED_QUOTAS = {  # families that draw on one quota
    "q_ecs_gn7e_postpay_g": ("ecs.gn7e", "ecs.ebmgn7e", "ecs.sccgn7ex"),
    "q_ecs_gn8v_postpay_g": ("ecs.gn8v", "ecs.ebmgn8v"),
}


@rule("alibaba-sells-it-this-way", AlicloudPlan)
def alibaba_sells_it_this_way(_: AlicloudSpec, plan: AlicloudPlan) -> Iterator[Violation]:
    """SCC and preview types have no spot market, and old ones are sold no more (ECS instance families)."""
    for i, group in enumerate(plan.groups):
        sold = load().type(group.type).usage_classes
        if "withdrawn" in sold:
            yield f"cluster.nodes[{i}].type", f"{group.type} is no longer sold; choose ecs.ebmgn7ex.32xlarge"
        elif (usage := USAGE_CLASSES[type(group.market)]) not in sold:
            yield f"cluster.nodes[{i}].market", f"{group.type} is not sold as {usage}, only as {sold[0]}"


@rule("alibaba-sells-it-by-contract", AlicloudPlan, level="warning")
def alibaba_sells_it_by_contract(_: AlicloudSpec, plan: AlicloudPlan) -> Iterator[Violation]:
    """Some families need a word with the vendor first; their quota is 0 until then (ECS instance families)."""
    for i, group in enumerate(plan.groups):
        for word in BY_CONTRACT.keys() & set(load().type(group.type).usage_classes):
            yield f"cluster.nodes[{i}].type", f"{group.type} needs {BY_CONTRACT[word]}: without it nothing starts"


@rule("alibaba-sells-it-here", AlicloudPlan, level="warning")
def alibaba_sells_it_here(_: AlicloudSpec, plan: AlicloudPlan) -> Iterator[Violation]:
    """A type is sold in some regions only; a price list tells which (karpenter-provider-alibabacloud, 2024-12-31)."""
    for i, group in enumerate(plan.groups):
        regions = [price.region for price in load().prices_of(group.type)]
        if regions and plan.region not in regions:
            yield f"cluster.nodes[{i}].type", f"{group.type} had no price in {plan.region}, but in {', '.join(regions)}"


@rule("spot-cap-is-no-more-than-on-demand", AlicloudPlan)
def spot_cap_is_no_more_than_on_demand(_: AlicloudSpec, plan: AlicloudPlan) -> Iterator[Violation]:
    """A limit above the on-demand price is refused (ECS API, RunInstances, SpotPriceLimit)."""
    for i, group in enumerate(plan.groups):
        cap = group.market.max_price_cny_per_hour if isinstance(group.market, Spot) else None
        types = group.capacity.types if isinstance(group.capacity, Mix) else (group.type,)
        for price in (on_demand(name, plan.region) for name in types):
            if price is not None and cap is not None and cap > price.on_demand_per_hour:
                message = f"{cap:g} CNY is more than {price.type} costs on demand, {price.on_demand_per_hour:g}"
                yield f"cluster.nodes[{i}].market.max_price", message


@rule("mix-names-its-price", AlicloudPlan)
def mix_names_its_price(_: AlicloudSpec, plan: AlicloudPlan) -> Iterator[Violation]:
    """Each pool of an auto provisioning group has a price limit (pulumi-alicloud 4.0.0, launch_template_configs)."""
    for i, group in enumerate(plan.groups):
        market = group.market
        if isinstance(group.capacity, Mix) and isinstance(market, Spot) and market.max_price_cny_per_hour is None:
            yield f"cluster.nodes[{i}].market.max_price", "is missing: a group of several types must name its limit"


@rule("only-a-scaling-group-falls-back", AlicloudPlan)
def only_a_scaling_group_falls_back(_: AlicloudSpec, plan: AlicloudPlan) -> Iterator[Violation]:
    """Neither an instance nor an auto provisioning group takes `compensate_with_on_demand` (pulumi-alicloud 4.0.0)."""
    for i, group in enumerate(plan.groups):
        if isinstance(group.market, Spot) and group.market.fallback and isinstance(group.capacity, Machines | Mix):
            several = isinstance(group.capacity, Mix)
            what = "a group of several types is" if several else "nodes that are declared one by one are"
            yield f"cluster.nodes[{i}].market.fallback", f"{what} spot alone; leave it out"


@rule("mix-is-of-one-gpu", AlicloudPlan)
def mix_is_of_one_gpu(_: AlicloudSpec, plan: AlicloudPlan) -> Iterator[Violation]:
    """Ranks wait for the slowest: nodes of one group have the same GPUs (PyTorch, DistributedDataParallel)."""
    for i, group in enumerate(plan.groups):
        types = group.capacity.types[1:] if isinstance(group.capacity, Mix) else ()
        for n, kind in enumerate(map(load().type, types)):
            if (kind.gpu, kind.gpu_count) != (group.gpu, group.gpus_per_node):
                has = f"{kind.gpu_count} × {kind.gpu}"
                yield f"cluster.nodes[{i}].others[{n}]", f"has {has}, and the group {group.gpus_per_node} × {group.gpu}"


@rule("pool-is-in-one-zone", AlicloudPlan)
def pool_is_in_one_zone(_: AlicloudSpec, plan: AlicloudPlan) -> Iterator[Violation]:
    """An elasticity assurance is of one type in one zone (ECS API, CreateElasticityAssurance, ZoneId)."""
    for i, group in enumerate(plan.groups):
        if isinstance(group.market, PrivatePool | Assurance) and len(group.vswitches) > 1:
            yield f"cluster.nodes[{i}].zone", f"a private pool is in one zone, this group in {len(group.vswitches)}"


@rule("assurance-is-confirmed", AlicloudPlan)
def assurance_is_confirmed(_: AlicloudSpec, plan: AlicloudPlan) -> Iterator[Violation]:
    """An elasticity assurance is paid for its whole time and never refunded (ECS User Guide, Elasticity Assurance)."""
    for i, group in enumerate(plan.groups):
        if isinstance(group.market, Assurance) and not group.market.confirmed:
            message = f'non-refundable: to confirm, set `confirm: "{group.market.sentence}"`'
            yield f"cluster.nodes[{i}].market.confirm", message


@rule("assurance-costs-at-once", AlicloudPlan, level="warning")
def assurance_costs_at_once(_: AlicloudSpec, plan: AlicloudPlan) -> Iterator[Violation]:
    """Its fee comes on top of the nodes' price, used or not (ECS User Guide, Elasticity Assurance, Billing)."""
    for i, group in enumerate(plan.groups):
        if isinstance(group.market, Assurance):
            fee = f"`up` buys an assurance for {group.most} nodes and {group.market.months} months"
            yield f"cluster.nodes[{i}].market", f"{fee}; its fee is in no table: ask the console first"


@rule("login-machine-stays", AlicloudPlan)
def login_machine_stays(spec: AlicloudSpec, plan: AlicloudPlan) -> Iterator[Violation]:
    """The login machine is one machine that nobody takes back: all others are reached through it."""
    for i, (group_spec, group) in enumerate(zip(spec.nodes, plan.groups, strict=True)):
        if group.role == "head" and group_spec.count != 1:
            key = "min" if group_spec.count is None else "count"
            yield f"cluster.nodes[{i}].{key}", "the group `head` is the one login machine: its count is 1"
        if group.role == "head" and not isinstance(group.market, OnDemand):
            yield f"cluster.nodes[{i}].market", f"the head is bought on demand, not as {group.market.kind}"


@rule("quota-is-shared", AlicloudPlan, level="info")
def quota_is_shared(_: AlicloudSpec, plan: AlicloudPlan) -> Iterator[Violation]:
    """ "With stock" does not mean creatable: families share a quota that begins small (ECS quotas)."""
    for i, group in enumerate(plan.groups):
        for quota, families in SHARED_QUOTAS.items():
            if group.type.startswith(families):
                yield f"cluster.nodes[{i}].type", f"counts against the quota {quota}: look at it before `up`"
