"""What a cluster on Alibaba Cloud costs an hour in CNY: every item, and for those without a price the reason why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from infra.clouds.alicloud.plan.capacity import Assurance, Mix, PrivatePool, Spot
from infra.clouds.alicloud.plan.model import AlicloudGroupPlan, AlicloudNetworkPlan
from infra.clouds.alicloud.spec.cluster import AlicloudSpec
from infra.plan.cloud_model import BucketPlan
from infra.plan.model import Cost, CostItem
from infra.plan.pricing import NO_TABLE, Bill, on_demand, spot_bill, summed

CURRENCY = "CNY"


def cost(
    spec: AlicloudSpec,
    groups: Sequence[AlicloudGroupPlan],
    network: AlicloudNetworkPlan,
    storage: Sequence[BucketPlan],
) -> Cost:
    """What is expected: the tables' price on demand, spot at its limit, an elastic group at its least."""
    bills = [_bill(group, spec.region) for group in groups]
    return summed(CURRENCY, bills, list(_unpriced(spec, groups, network, storage)))


def _bill(group: AlicloudGroupPlan, region: str) -> Bill:
    types = group.capacity.types if isinstance(group.capacity, Mix) else (group.type,)
    prices = [on_demand(name, region) for name in types]
    known = [price for price in prices if price is not None]
    price = max(known, key=lambda each: each.on_demand_per_hour) if len(known) == len(types) else None
    if isinstance(group.market, Spot):
        fallback = group.market.fallback is not None
        return spot_bill(group, price, group.market.max_price_cny_per_hour, fallback=fallback)
    if price is None:
        return Bill(group=group, expected=None, most=None, source=NO_TABLE)
    source = f"on demand in {price.region} on {price.date}: {price.source}"
    if isinstance(group.market, PrivatePool | Assurance):
        source += " (the pool's own fee is not in the tables)"
    each = price.on_demand_per_hour
    return Bill(group=group, expected=group.count * each, most=group.most * each, source=source)


def _unpriced(
    spec: AlicloudSpec,
    groups: Sequence[AlicloudGroupPlan],
    network: AlicloudNetworkPlan,
    storage: Sequence[BucketPlan],
) -> Iterator[CostItem]:
    """What else is on the bill. The tables hold prices of instance types only."""
    clusters = 0 if spec.ack is None else 1
    quantities = {
        "system disks, GiB": sum(group.count * group.root.size_gib for group in groups),
        "NAT gateway": int(network.nat is not None),
        "public addresses": int(network.nat is not None) + sum(group.count for group in groups if group.public_address),
        **{f"{item.name}, bucket by what it holds": 1 for item in storage},
        "bucket of the playbooks, by what it holds": 1 - clusters,
        "cluster of ACK Pro": clusters,
        "load balancer of the control plane": clusters,
        "log of the control plane, by what it holds": clusters,
        "elasticity assurance": sum(isinstance(group.market, Assurance) for group in groups),
        "keys": 1,
        "flow log, by what it holds": 1,
        "queue, by its messages": 1,
        "traffic to the internet, by what is sent": 1,
    }
    for name, quantity in quantities.items():
        if quantity:
            yield CostItem(name=name, quantity=quantity, hourly=None, source=NO_TABLE)
