"""What a cluster on AWS costs an hour: every item, and for those without a sourced price the reason why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from infra.catalog import load
from infra.clouds.aws.plan.capacity import CapacityBlock, Elastic, Reservation, Spot
from infra.clouds.aws.plan.model import AwsGroupPlan, AwsNetworkPlan, LustrePlan
from infra.clouds.aws.plan.volumes import GP3_IOPS, GP3_MIB_PER_SECOND
from infra.clouds.aws.spec.cluster import AwsSpec
from infra.plan.cloud_model import BucketPlan
from infra.plan.model import Cost, CostItem, Surrounding
from infra.plan.pricing import NO_TABLE, Bill, on_demand, spot_bill, summed

INCLUDED = (GP3_IOPS.start, GP3_MIB_PER_SECOND.start)  # in the price of a gp3 volume

PAID_UP_FRONT = "paid up front, at the price of the block's offer"

CONTROL_PLANE = CostItem(  # as long as its version has standard support, beyond which the plan lets no cluster go
    name="control plane of EKS",
    quantity=1,
    hourly=0.10,
    source="AWS Containers Blog, Amazon EKS extended support for Kubernetes versions pricing (2024)",
)


def cost(
    asked: AwsSpec, groups: Sequence[AwsGroupPlan], network: AwsNetworkPlan, storage: Sequence[BucketPlan | LustrePlan]
) -> Cost:
    """What is expected: the tables' price on demand, spot at its limit, an elastic group at its least."""
    bills = [_bill(group, asked.region) for group in groups]
    fixed = (CONTROL_PLANE,) if asked.eks else ()
    beside = [*fixed, *_beside(asked, groups, network, storage)]
    at_most = [*fixed, *_beside(asked, groups, network, storage, most=True)]
    return summed("USD", bills, beside, at_most)


def _bill(group: AwsGroupPlan, region: str) -> Bill:
    price = on_demand(group.type, region)
    if isinstance(group.market, CapacityBlock):
        return Bill(group=group, expected=None, most=None, source=_up_front(group.market))
    if isinstance(group.market, Spot):
        least_on_demand = isinstance(group.capacity, Elastic) and group.capacity.on_demand_base > 0
        cap, fallback = group.market.max_price_usd_per_hour, group.market.fallback is not None
        return spot_bill(group, price, cap, fallback=fallback, first_on_demand=least_on_demand)
    if price is None:
        return Bill(group=group, expected=None, most=None, source=NO_TABLE)
    unused = " (a reservation costs it used or not)" if isinstance(group.market, Reservation) else ""
    source = f"on demand in {price.region} on {price.date}: {price.source}{unused}"
    each = price.on_demand_per_hour
    return Bill(group=group, expected=group.count * each, most=group.most * each, source=source)


def _up_front(block: CapacityBlock) -> str:
    """An offer names its price when it is looked up; until then only the limit is known."""
    if block.purchase is None:
        return PAID_UP_FRONT
    return f"{PAID_UP_FRONT}: at most {block.purchase.usd_at_most:,.2f} USD when `up` buys it"


def _beside(
    asked: AwsSpec,
    groups: Sequence[AwsGroupPlan],
    network: AwsNetworkPlan,
    storage: Sequence[BucketPlan | LustrePlan],
    *,
    most: bool = False,
) -> Iterator[CostItem]:
    """What else is on the bill, with as many nodes as there are at first, or at most."""
    clusters = 0 if asked.eks is None else 1
    interface = [each for each in network.endpoints if each.kind == "interface"]
    nodes = {group.name: group.most if most else group.count for group in groups}
    faster = [group for group in groups if (group.root.iops, group.root.mib_per_second) != INCLUDED]
    quantities = {
        "root volumes, GiB": sum(nodes[group.name] * group.root.size_gib for group in groups),
        "root volumes with more than the included speed": sum(nodes[group.name] for group in faster),
        "NAT gateways": len(network.nat),
        "public addresses": len(network.nat) + sum(nodes[group.name] for group in groups if group.public_address),
        "interface endpoints": sum(len(each.subnets) for each in interface),
        **_lustre([item for item in storage if isinstance(item, LustrePlan)]),
        **{f"{item.name}, bucket by what it holds": 1 for item in storage if isinstance(item, BucketPlan)},
        "bucket of the playbooks, by what it holds": 1 - clusters,
        "keys": 1,
        "flow log, by what it holds": 1,
        "log of the control plane, by what it holds": clusters,
        "queue, by its messages": 1,
        "traffic between zones and to the internet, by what is sent": 1,
    }
    for name, quantity in quantities.items():
        if quantity:
            yield _item(name, quantity, asked.region)


def _lustre(file_systems: Sequence[LustrePlan]) -> Mapping[str, int]:
    """GiB by what they are billed as. The metadata's speed is in the price as long as it follows the size."""
    gib: Counter[str] = Counter()
    for item in file_systems:
        gib[f"Lustre at {item.mib_per_second_per_tib} MB/s per TiB, GiB"] += item.size_gib
    return gib


def _item(name: str, quantity: int, region: str) -> CostItem:
    extra = load().extra(name, region)
    if extra is None:
        return Surrounding(name=name, quantity=quantity, hourly=None, source=NO_TABLE)
    source = f"in {extra.region}, read on {extra.date}: {extra.source}"
    return Surrounding(name=name, quantity=quantity, hourly=quantity * extra.usd_per_hour, source=source)
