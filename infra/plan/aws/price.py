"""What a cluster on AWS costs an hour: every item, and for those without a sourced price the reason why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from infra.catalog import Price, UnknownRegion, load
from infra.plan.aws.capacity import CapacityBlock, Elastic, Reservation, Spot
from infra.plan.aws.plan import AwsGroupPlan, AwsNetworkPlan, BucketPlan, LustrePlan
from infra.plan.plan import Cost, CostItem
from infra.spec.aws import AwsSpec

NO_TABLE = "no price in the tables"

PAID_UP_FRONT = "paid up front, at the price of the block's offer"

CONTROL_PLANE = CostItem(  # as long as its version has standard support, beyond which the plan lets no cluster go
    name="control plane of EKS",
    quantity=1,
    hourly=0.10,
    source="AWS Containers Blog, Amazon EKS extended support for Kubernetes versions pricing (2024)",
)


@dataclass(frozen=True, kw_only=True)
class _Bill:
    """USD per hour of a group, expected and at most; None where its type has no price."""

    group: AwsGroupPlan
    expected: float | None
    most: float | None
    source: str


def on_demand(type_name: str, region: str) -> Price | None:
    """None where the tables have no price of the type, or none of the region at all."""
    try:
        return load().price(type_name, region)
    except UnknownRegion:
        return None


def cost(
    asked: AwsSpec, groups: Sequence[AwsGroupPlan], network: AwsNetworkPlan, storage: Sequence[BucketPlan | LustrePlan]
) -> Cost:
    """What is expected: the tables' price on demand, spot at its limit, an elastic group at its least."""
    bills = [_bill(group, asked.region) for group in groups]
    fixed = (CONTROL_PLANE,) if asked.eks else ()
    always = sum(item.hourly or 0.0 for item in fixed)
    items = [
        *(
            CostItem(name=each.group.name, quantity=each.group.count, hourly=each.expected, source=each.source)
            for each in bills
        ),
        *fixed,
        *_unpriced(asked, groups, network, storage),
    ]
    per_gpu, per_pflop = _ratios(bills)
    return Cost(
        currency="USD",
        hourly=sum(each.expected or 0.0 for each in bills) + always,
        hourly_max=sum(each.most or 0.0 for each in bills) + always,
        per_gpu_hour=per_gpu,
        per_pflop_hour=per_pflop,
        items=tuple(items),
    )


def _bill(group: AwsGroupPlan, region: str) -> _Bill:
    price = on_demand(group.type, region)
    if isinstance(group.market, CapacityBlock):
        return _Bill(group=group, expected=None, most=None, source=_up_front(group.market))
    if isinstance(group.market, Spot):
        return _spot_bill(group, group.market, price)
    if price is None:
        return _Bill(group=group, expected=None, most=None, source=NO_TABLE)
    unused = " (a reservation costs it used or not)" if isinstance(group.market, Reservation) else ""
    source = f"on demand in {price.region} on {price.date}: {price.source}{unused}"
    each = price.on_demand_per_hour
    return _Bill(group=group, expected=group.count * each, most=group.most * each, source=source)


def _up_front(block: CapacityBlock) -> str:
    """An offer names its price when it is looked up; until then only the limit is known."""
    if block.purchase is None:
        return PAID_UP_FRONT
    return f"{PAID_UP_FRONT}: at most {block.purchase.usd_at_most:,.2f} USD when `up` buys it"


def _spot_bill(group: AwsGroupPlan, market: Spot, price: Price | None) -> _Bill:
    """Spot moves by the hour, and spot.csv only saw some: a node costs at most its cap, or the on-demand price."""
    full = None if price is None else price.on_demand_per_hour
    caps = [each for each in (market.max_price_usd_per_hour, full) if each is not None]
    if not caps or (market.fallback and full is None):
        return _Bill(group=group, expected=None, most=None, source=NO_TABLE)
    cap = min(caps)
    dearest = full if market.fallback and full is not None else cap
    source = "spot at its cap" if market.max_price_usd_per_hour == cap else "spot at the on-demand price, its limit"
    first = dearest if isinstance(group.capacity, Elastic) and group.capacity.on_demand_base else cap
    return _Bill(group=group, expected=group.count * first, most=group.most * dearest, source=source)


def _ratios(bills: Sequence[_Bill]) -> tuple[float | None, float | None]:
    """USD per GPU-hour, and per 10^15 operations a second for an hour, both of the GPU nodes that are expected."""
    of_gpus = [bill for bill in bills if bill.group.gpu is not None and bill.group.count]
    if not of_gpus or any(bill.expected is None for bill in of_gpus):
        return None, None
    total = sum(bill.expected or 0.0 for bill in of_gpus)
    rates = [_tflops(bill.group) for bill in of_gpus]
    tflops = None if None in rates else sum(rate or 0.0 for rate in rates)
    return total / sum(_gpus(bill.group) for bill in of_gpus), total / (tflops / 1000) if tflops else None


def _gpus(group: AwsGroupPlan) -> float:
    """Whole GPUs: some types rent a part of one."""
    return group.count * group.gpus_per_node * load().type(group.type).gpu_share


def _tflops(group: AwsGroupPlan) -> float | None:
    """What the group's GPUs do together in bf16; None where no figure is known."""
    catalog = load()
    rate = catalog.rate(catalog.gpu(group.gpu), "bf16") if group.gpu else None
    return _gpus(group) * rate.tflops if rate else None


def _unpriced(
    asked: AwsSpec, groups: Sequence[AwsGroupPlan], network: AwsNetworkPlan, storage: Sequence[BucketPlan | LustrePlan]
) -> Iterator[CostItem]:
    """What else is on the bill. The tables hold prices of instance types only."""
    interface = [each for each in network.endpoints if each.kind == "interface"]
    quantities = {
        "root volumes, GiB": sum(group.count * group.root.size_gib for group in groups),
        "NAT gateways": len(network.nat),
        "public addresses": len(network.nat) + sum(group.count for group in groups if group.public_address),
        "interface endpoints": sum(len(each.subnets) for each in interface),
        **{f"{item.name}, GiB of Lustre": item.size_gib for item in storage if isinstance(item, LustrePlan)},
        **{f"{item.name}, bucket by what it holds": 1 for item in storage if isinstance(item, BucketPlan)},
        "bucket of the playbooks, by what it holds": int(asked.eks is None),
        "keys": 1,
        "flow log, by what it holds": 1,
        "log of the control plane, by what it holds": int(asked.eks is not None),
        "queue, by its messages": 1,
        "traffic between zones and to the internet, by what is sent": 1,
    }
    for name, quantity in quantities.items():
        if quantity:
            yield CostItem(name=name, quantity=quantity, hourly=None, source=NO_TABLE)
