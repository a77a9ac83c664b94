"""What a plan costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from infra.catalog import Price, UnknownRegionError, load
from infra.plan.cloud_model import CloudGroupPlan
from infra.plan.model import Cost, CostItem

NO_TABLE = "no price in the tables"


@dataclass(frozen=True, kw_only=True)
class Bill:
    """What a group costs an hour, expected and at most; None where its type has no price. All in one currency."""

    group: CloudGroupPlan
    expected: float | None
    most: float | None
    source: str


def on_demand(type_name: str, region: str) -> Price | None:
    """None where the tables have no price of the type, or none of the region at all."""
    try:
        return load().price(type_name, region)
    except UnknownRegionError:
        return None


def spot_bill(
    group: CloudGroupPlan, price: Price | None, cap: float | None, *, fallback: bool, first_on_demand: bool = False
) -> Bill:
    """Spot moves by the hour: a node costs at most its cap, or the on-demand price, which is its limit.

    fallback: what is not there as spot is bought on demand. first_on_demand: the first nodes are.
    """
    full = None if price is None else price.on_demand_per_hour
    caps = [each for each in (cap, full) if each is not None]
    if not caps or (fallback and full is None):
        return Bill(group=group, expected=None, most=None, source=NO_TABLE)
    limit = min(caps)
    dearest = full if fallback and full is not None else limit
    source = "spot at its cap" if cap == limit else "spot at the on-demand price, its limit"
    first = dearest if first_on_demand else limit
    return Bill(group=group, expected=group.count * first, most=group.most * dearest, source=source)


def summed(
    currency: str, bills: Sequence[Bill], others: Sequence[CostItem], most: Sequence[CostItem] | None = None
) -> Cost:
    """The whole: the groups, and the others. most: the others with as many nodes as there may be, if it differs."""
    per_gpu, per_pflop = _ratios(bills)
    groups = (
        CostItem(name=each.group.name, quantity=each.group.count, hourly=each.expected, source=each.source)
        for each in bills
    )
    return Cost(
        currency=currency,
        hourly=sum(each.expected or 0.0 for each in bills) + sum(item.hourly or 0.0 for item in others),
        hourly_max=sum(each.most or 0.0 for each in bills)
        + sum(item.hourly or 0.0 for item in (others if most is None else most)),
        per_gpu_hour=per_gpu,
        per_pflop_hour=per_pflop,
        items=(*groups, *others),
    )


def _ratios(bills: Sequence[Bill]) -> tuple[float | None, float | None]:
    """The price of a GPU-hour, and of 10^15 operations a second for an hour, of the GPU nodes that are expected."""
    of_gpus = [bill for bill in bills if bill.group.gpu is not None and bill.group.count]
    if not of_gpus or any(bill.expected is None for bill in of_gpus):
        return None, None
    total = sum(bill.expected or 0.0 for bill in of_gpus)
    rates = [_tflops(bill.group) for bill in of_gpus]
    tflops = None if None in rates else sum(rate or 0.0 for rate in rates)
    return total / sum(_gpus(bill.group) for bill in of_gpus), total / (tflops / 1000) if tflops else None


def _gpus(group: CloudGroupPlan) -> float:
    """Whole GPUs: some types rent a part of one."""
    return group.count * group.gpus_per_node * load().type(group.type).gpu_share


def _tflops(group: CloudGroupPlan) -> float | None:
    """What the group's GPUs do together in bf16; None where no figure is known."""
    catalog = load()
    rate = catalog.rate(catalog.gpu(group.gpu), "bf16") if group.gpu else None
    return _gpus(group) * rate.tflops if rate else None
