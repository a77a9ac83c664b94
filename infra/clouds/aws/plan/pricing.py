"""What a cluster on AWS costs an hour: every item, and for those without a sourced price the reason why."""

from __future__ import annotations

import re
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

LABELS = {
    "root-volume-gib": "root volumes, GiB",
    "root-volume-speed": "root volumes with more than the included speed",
    "nat-gateway": "NAT gateways",
    "public-address": "public addresses",
    "interface-endpoint": "interface endpoints",
    "playbook-bucket": "bucket of the playbooks, by what it holds",
    "key": "keys",
    "flow-log": "flow log, by what it holds",
    "control-plane-log": "log of the control plane, by what it holds",
    "queue": "queue, by its messages",
    "traffic": "traffic between zones and to the internet, by what is sent",
}

PAID_UP_FRONT = "paid up front, at the price of the block's offer"

CONTROL_PLANE = CostItem(  # as long as its version has standard support, beyond which the plan lets no cluster go
    name="control plane of EKS",
    quantity=1,
    hourly=0.10,
    source="AWS Containers Blog, Amazon EKS extended support for Kubernetes versions pricing (2024)",
)


def cost(
    spec: AwsSpec, groups: Sequence[AwsGroupPlan], network: AwsNetworkPlan, storage: Sequence[BucketPlan | LustrePlan]
) -> Cost:
    """What is expected: the tables' price on demand, spot at its limit, an elastic group at its least."""
    bills = [_bill(group, spec.region) for group in groups]
    fixed = (CONTROL_PLANE,) if spec.eks else ()
    beside = [*fixed, *_beside(spec, groups, network, storage)]
    at_most = [*fixed, *_beside(spec, groups, network, storage, most=True)]
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
    spec: AwsSpec,
    groups: Sequence[AwsGroupPlan],
    network: AwsNetworkPlan,
    storage: Sequence[BucketPlan | LustrePlan],
    *,
    most: bool = False,
) -> Iterator[CostItem]:
    """What else is on the bill, with as many nodes as there are at first, or at most."""
    clusters = 0 if spec.eks is None else 1
    interface = [each for each in network.endpoints if each.kind == "interface"]
    nodes = {group.name: group.most if most else group.count for group in groups}
    faster = [group for group in groups if (group.root.iops, group.root.mib_per_second) != INCLUDED]
    quantities = {
        "root-volume-gib": sum(nodes[group.name] * group.root.size_gib for group in groups),
        "root-volume-speed": sum(nodes[group.name] for group in faster),
        "nat-gateway": len(network.nat),
        "public-address": len(network.nat) + sum(nodes[group.name] for group in groups if group.public_address),
        "interface-endpoint": sum(len(each.subnets) for each in interface),
        **_lustre([item for item in storage if isinstance(item, LustrePlan)]),
        **{f"bucket-{item.name}": 1 for item in storage if isinstance(item, BucketPlan)},
        "playbook-bucket": 1 - clusters,
        "key": 1,
        "flow-log": 1,
        "control-plane-log": clusters,
        "queue": 1,
        "traffic": 1,
    }
    for item, quantity in quantities.items():
        if quantity:
            yield _item(item, quantity, spec.region)


def _lustre(file_systems: Sequence[LustrePlan]) -> Mapping[str, int]:
    """GiB by what they are billed as. The metadata's speed is in the price as long as it follows the size."""
    gib: Counter[str] = Counter()
    for item in file_systems:
        gib[f"lustre-{item.mib_per_second_per_tib}-gib"] += item.size_gib
    return gib


def label(item: str) -> str:
    """What a bill calls an item, by its id in extras.csv."""
    if speed := re.fullmatch(r"lustre-(\d+)-gib", item):
        return f"Lustre at {speed[1]} MB/s per TiB, GiB"
    if bucket := re.fullmatch(r"bucket-(.+)", item):
        return f"{bucket[1]}, bucket by what it holds"
    return LABELS[item]


def _item(item: str, quantity: int, region: str) -> CostItem:
    extra = load().extra(item, region)
    if extra is None:
        return Surrounding(name=label(item), quantity=quantity, hourly=None, source=NO_TABLE)
    source = f"in {extra.region}, read on {extra.date}: {extra.source}"
    return Surrounding(name=label(item), quantity=quantity, hourly=quantity * extra.usd_per_hour, source=source)
