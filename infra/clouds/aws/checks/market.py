"""Rules about how nodes of EC2 are bought."""

from __future__ import annotations

from collections.abc import Iterator

from infra.catalog import load
from infra.checks.rule import Violation, rule
from infra.clouds.aws.plan.capacity import CapacityBlock, Elastic, Market, OnDemand, Reservation, Spot
from infra.clouds.aws.plan.model import AwsHostsPlan, AwsPlan
from infra.clouds.aws.plan.pricing import on_demand
from infra.clouds.aws.spec.cluster import AwsSpec

# A reservation is on-demand capacity that is held.
USAGE_CLASSES: dict[type[Market], str] = {
    OnDemand: "on-demand",
    Reservation: "on-demand",
    Spot: "spot",
    CapacityBlock: "capacity-block",
}
MOST_IN_A_BLOCK = 64


@rule("type-is-sold-this-way", AwsPlan)
def type_is_sold_this_way(_: AwsSpec, plan: AwsPlan) -> Iterator[Violation]:
    """Each type has its usage classes (EC2 API, DescribeInstanceTypes, SupportedUsageClasses)."""
    for i, group in enumerate(plan.groups):
        sold = load().type(group.type).usage_classes
        if (usage := USAGE_CLASSES[type(group.market)]) not in sold:
            yield f"cluster.nodes[{i}].market", f"{group.type} is not sold as {usage}, only as {' or '.join(sold)}"


@rule("type-is-offered-in-the-region", AwsPlan)
def type_is_offered_in_the_region(_: AwsSpec, plan: AwsPlan) -> Iterator[Violation]:
    """A price list may name a type that no zone of the region has (EC2 API, DescribeInstanceTypeOfferings)."""
    for i, group in enumerate(plan.groups):
        if load().offered(group.type, plan.region) is False:
            yield f"cluster.nodes[{i}].type", f"no zone of {plan.region} offers {group.type}"


@rule("reserved-capacity-is-in-one-zone", AwsPlan)
def reserved_capacity_is_in_one_zone(_: AwsSpec, plan: AwsPlan) -> Iterator[Violation]:
    """A reservation stands in one zone, and only nodes there use it (EC2 User Guide, Capacity Reservations)."""
    for i, group in enumerate(plan.groups):
        if isinstance(group.market, Reservation | CapacityBlock) and len(group.subnets) > 1:
            message = f"{group.market.id} is in one zone, and this group spans {len(group.subnets)}; name the zone"
            yield f"cluster.nodes[{i}].zone", message


@rule("block-holds-the-nodes", AwsPlan)
def block_holds_the_nodes(_: AwsSpec, plan: AwsPlan) -> Iterator[Violation]:
    """A capacity block has at most 64 instances (EC2 User Guide, Capacity Blocks for ML)."""
    for i, group in enumerate(plan.groups):
        if isinstance(group.market, CapacityBlock) and group.most > MOST_IN_A_BLOCK:
            key = "max" if isinstance(group.capacity, Elastic) else "count"
            yield f"cluster.nodes[{i}].{key}", f"{group.most} is more than a capacity block has: {MOST_IN_A_BLOCK}"


@rule("purchase-is-confirmed", AwsPlan)
def purchase_is_confirmed(_: AwsSpec, plan: AwsPlan) -> Iterator[Violation]:
    """A capacity block is charged up front, and can be neither changed nor cancelled (EC2 User Guide)."""
    for i, group in enumerate(plan.groups):
        if isinstance(group.market, CapacityBlock) and (purchase := group.market.purchase) and not purchase.confirmed:
            message = f'non-refundable: to confirm, set `confirm: "{purchase.sentence}"`'
            yield f"cluster.nodes[{i}].market.buy.confirm", message


@rule("purchase-costs-at-once", AwsPlan, level="warning")
def purchase_costs_at_once(_: AwsSpec, plan: AwsPlan) -> Iterator[Violation]:
    """PurchaseCapacityBlock charges the whole upfront fee (EC2 API); no budget of AWS stops it."""
    for i, group in enumerate(plan.groups):
        if isinstance(group.market, CapacityBlock) and (purchase := group.market.purchase):
            message = (
                f"`up` buys {group.market.id} for up to {purchase.usd_at_most:,.2f} USD, on top of the hourly price"
            )
            yield f"cluster.nodes[{i}].market.buy", message


@rule("reserved-group-is-in-the-region", AwsPlan)
def reserved_group_is_in_the_region(_: AwsSpec, plan: AwsPlan) -> Iterator[Violation]:
    """A placement group is of one region (EC2 User Guide, Placement groups)."""
    for i, group in enumerate(plan.groups):
        arn = group.placement.existing_arn
        if arn is not None and (region := arn.split(":")[3]) != plan.region:
            yield f"cluster.nodes[{i}].market.placement_group", f"is in {region}, and the cluster is in {plan.region}"


@rule("two-groups-share-no-reservation", AwsPlan, level="warning")
def two_groups_share_no_reservation(_: AwsSpec, plan: AwsPlan) -> Iterator[Violation]:
    """Whoever launches first takes the capacity: an all-or-nothing gang after it gets nothing (EC2 User Guide)."""
    ids = [group.market.id if isinstance(group.market, Reservation | CapacityBlock) else None for group in plan.groups]
    for i, id_ in enumerate(ids):
        if id_ is not None and id_ in ids[:i]:
            yield f"cluster.nodes[{i}].market.id", f"{id_} is the reservation of nodes[{ids.index(id_)}] already"


@rule("reserved-capacity-is-used", AwsPlan, level="warning")
def reserved_capacity_is_used(_: AwsSpec, plan: AwsPlan) -> Iterator[Violation]:
    """Reserved capacity is paid whether used or not (EC2 User Guide, Capacity Reservation pricing and billing)."""
    for i, group in enumerate(plan.groups):
        if isinstance(group.market, Reservation | CapacityBlock) and isinstance(group.capacity, Elastic):
            yield (
                f"cluster.nodes[{i}].min",
                "reserved capacity costs the same unused: a group that shrinks saves nothing",
            )


@rule("spot-has-a-cap", AwsHostsPlan)
def spot_has_a_cap(_: AwsSpec, plan: AwsHostsPlan) -> Iterator[Violation]:
    """The policy wants one of every pool that spot is bought from (`policy/nodes/fleets.py`); EKS has its own."""
    for i, group in enumerate(plan.groups):
        if isinstance(group.market, Spot) and group.market.max_price_usd_per_hour is None:
            yield f"cluster.nodes[{i}].market.max_price", "is missing: name the most USD that a node may cost an hour"


@rule("spot-cap-is-below-on-demand", AwsPlan, level="warning")
def spot_cap_is_below_on_demand(_: AwsSpec, plan: AwsPlan) -> Iterator[Violation]:
    """Without a cap the on-demand price is the limit (EC2 API, SpotMarketOptions MaxPrice)."""
    for i, group in enumerate(plan.groups):
        price = on_demand(group.type, plan.region)
        cap = group.market.max_price_usd_per_hour if isinstance(group.market, Spot) else None
        if price is not None and cap is not None and cap > price.on_demand_per_hour:
            message = f"{cap:g} USD is more than the on-demand price, {price.on_demand_per_hour:g}; lower it"
            yield f"cluster.nodes[{i}].market.max_price", message


@rule("head-stays", AwsPlan)
def head_stays(spec: AwsSpec, plan: AwsPlan) -> Iterator[Violation]:
    """The login machine is one machine that nobody takes back: all others are reached through it."""
    for i, (group_spec, group) in enumerate(zip(spec.nodes, plan.groups, strict=True)):
        if group.role == "head" and group_spec.count != 1:
            key = "min" if group_spec.count is None else "count"
            yield f"cluster.nodes[{i}].{key}", "the group `head` is the one login machine: its count is 1"
        if group.role == "head" and not isinstance(group.market, OnDemand):
            yield f"cluster.nodes[{i}].market", f"the head is bought on demand, not as {group.market.kind}"
