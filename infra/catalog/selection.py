"""Selects the instance types that meet a request, cheapest compute first, from the tables alone: no API is called."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from math import inf
from typing import get_args

from infra.catalog import Catalog, FabricNeed, Gpu, InstanceType, Precision, Price, Rate, UnknownRegionError
from infra.suggest import hint


class AskError(ValueError):
    """An ask that makes no sense; one line that says which part and why."""


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """An exchange rate: US dollars in another currency on a day. It is never in the tables: the user passes it."""

    currency: str
    per_usd: float
    date: date


@dataclass(frozen=True, kw_only=True)
class Ask:
    """What a job needs. Raises AskError.

    region: None prices each type where it costs least. gpu_memory_gib: usable memory of each GPU, at least. precision:
    the format of its matrix products. fabric: between nodes where one node does not hold all GPUs: a type without is
    refused ("required"), ranked behind ("preferred") or as good ("none"). exchange: for prices in its currency, None
    where dollars alone count. clouds: empty for every cloud of the tables.
    """

    gpus: int
    region: str | None = None
    gpu_memory_gib: float = 0.0
    precision: Precision = "bf16"
    fabric: FabricNeed = "preferred"
    budget_usd_per_hour: float | None = None
    exchange: Exchange | None = None
    clouds: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.gpus < 1:
            raise AskError(f"gpus: {self.gpus} is too few; at least 1")
        if not 0 <= self.gpu_memory_gib < inf:
            raise AskError(f"gpu memory: {self.gpu_memory_gib} is no amount of GiB")
        if self.budget_usd_per_hour is not None and not 0 <= self.budget_usd_per_hour < inf:
            raise AskError(f"budget: {self.budget_usd_per_hour} is no amount of USD per hour")
        if self.exchange is not None and not 0 < self.exchange.per_usd < inf:
            raise AskError(f"rate: {self.exchange.per_usd} {self.exchange.currency} is no price of a dollar")
        _known("precision", self.precision, get_args(Precision))
        _known("fabric", self.fabric, get_args(FabricNeed))


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A type that fits, and how many of it.

    gpus: of all nodes, more than requested where the last node is not filled. usd_per_pflop_hour: the price of the
    compute of the requested GPUs at `rate`; idle GPUs are not counted.
    """

    kind: InstanceType
    gpu: Gpu
    rate: Rate
    price: Price
    nodes: int
    gpus: int
    usd_per_hour: float
    usd_per_pflop_hour: float

    @property
    def usd_per_gpu_hour(self) -> float:
        return self.usd_per_hour / self.gpus

    @property
    def joined(self) -> bool:
        """Whether a fabric joins the nodes, or one node needs none."""
        return self.nodes == 1 or self.kind.fabric is not None


@dataclass(frozen=True, kw_only=True)
class Rejected:
    """A type that does not fit, and the first reason why."""

    type: str
    cloud: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Every GPU type of the requested clouds once: ranked, best first, or rejected, in the tables' order."""

    ranked: tuple[Offer, ...]
    rejected: tuple[Rejected, ...]


def choose(ask: Ask, catalog: Catalog) -> Choice:
    """Ranks by USD per PFLOP-hour: what work costs, not what an hour costs. Raises AskError, UnknownRegionError."""
    for cloud in ask.clouds:
        _known("cloud", cloud, catalog.clouds)
    _check_region(ask, catalog)
    ranked: list[Offer] = []
    rejected: list[Rejected] = []
    for kind in catalog.types:
        if kind.gpu is None or (ask.clouds and kind.cloud not in ask.clouds):
            continue
        try:
            ranked.append(_offer(ask, catalog, kind, catalog.gpu(kind.gpu)))
        except _RefusedError as refused:
            rejected.append(Rejected(type=kind.name, cloud=kind.cloud, reason=str(refused)))
    return Choice(ranked=tuple(sorted(ranked, key=lambda offer: _order(ask, offer))), rejected=tuple(rejected))


def _order(ask: Ask, offer: Offer) -> tuple[bool, float, int, float, str]:
    """Equal work for equal money (to a millionth of a dollar) goes to fewer nodes."""
    apart = ask.fabric == "preferred" and not offer.joined
    return apart, round(offer.usd_per_pflop_hour, 6), offer.nodes, offer.usd_per_hour, offer.kind.name


def _check_region(ask: Ask, catalog: Catalog) -> None:
    regions = dict.fromkeys(region for cloud in ask.clouds or catalog.clouds for region in catalog.regions(cloud))
    if ask.region is not None and ask.region not in regions:
        raise UnknownRegionError(ask.region, regions)


class _RefusedError(Exception):
    """Why a type does not fit; never leaves `choose`."""


def _offer(ask: Ask, catalog: Catalog, kind: InstanceType, gpu: Gpu) -> Offer:
    nodes = -(-ask.gpus // kind.gpu_count)
    _check_gpu(ask, kind, gpu)
    rate = _rate(ask, catalog, gpu)
    _check_fabric(ask, kind, nodes)
    price = _price(ask, catalog, kind)
    usd_per_hour = nodes * _usd(ask, price)
    if ask.budget_usd_per_hour is not None and usd_per_hour > ask.budget_usd_per_hour:
        raise _RefusedError(f"{nodes} of it cost {usd_per_hour:.2f} USD/h, more than {ask.budget_usd_per_hour:g}")
    return Offer(
        kind=kind,
        gpu=gpu,
        rate=rate,
        price=price,
        nodes=nodes,
        gpus=nodes * kind.gpu_count,
        usd_per_hour=usd_per_hour,
        usd_per_pflop_hour=usd_per_hour / (ask.gpus * rate.tflops / 1000),
    )


def _check_gpu(ask: Ask, kind: InstanceType, gpu: Gpu) -> None:
    if kind.gpu_share < 1:
        raise _RefusedError(f"rents {kind.gpu_share:g} of a GPU, not a whole one")
    if kind.gpu_memory_gib is None:
        raise _RefusedError("its usable GPU memory is not known")
    if kind.gpu_memory_gib < ask.gpu_memory_gib:
        sold_as = f" ({gpu.name}, sold as {gpu.memory_gb} GB)"
        raise _RefusedError(f"{kind.gpu_memory_gib:.1f} GiB a GPU{sold_as}, {ask.gpu_memory_gib:g} GiB asked")


def _rate(ask: Ask, catalog: Catalog, gpu: Gpu) -> Rate:
    if not gpu.has(ask.precision):
        raise _RefusedError(f"{gpu.name} does not compute in {ask.precision}")
    rate = catalog.rate(gpu, ask.precision)
    if rate is None:
        raise _RefusedError(f"no dense {ask.precision} figure is known for {gpu.name}")
    return rate


def _check_fabric(ask: Ask, kind: InstanceType, nodes: int) -> None:
    if ask.fabric != "required" or nodes == 1:
        return
    if kind.fabric is None:
        raise _RefusedError("takes more than one node and has no fabric between nodes")
    if kind.fabric_interfaces is None:
        raise _RefusedError("its fabric interfaces are not known")


def _price(ask: Ask, catalog: Catalog, kind: InstanceType) -> Price:
    if ask.region is None:
        price = next(iter(catalog.prices_of(kind.name)), None)
    elif ask.region in catalog.regions(kind.cloud):
        price = catalog.price(kind.name, ask.region)
    else:
        raise _RefusedError(f"{kind.cloud} has no region {ask.region}")
    if price is None and "on-demand" not in kind.usage_classes:
        raise _RefusedError(f"not sold on demand, only as {' or '.join(kind.usage_classes)}")
    if price is None:
        raise _RefusedError(f"no on-demand price is known{f' in {ask.region}' if ask.region else ''}")
    return price


def _usd(ask: Ask, price: Price) -> float:
    """Of one node an hour."""
    if price.currency == "USD":
        return price.on_demand_per_hour
    if ask.exchange is None or ask.exchange.currency != price.currency:
        raise _RefusedError(
            f"its price is in {price.currency}; say what a dollar is worth: --rate {price.currency}=…@<day>"
        )
    return price.on_demand_per_hour / ask.exchange.per_usd


def _known(what: str, word: str, known: tuple[str, ...]) -> None:
    if word not in known:
        raise AskError(f"{what}: '{word}' is none of {', '.join(known)}{hint(word, known)}")
