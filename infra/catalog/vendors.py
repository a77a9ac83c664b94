"""Vendors compared by 23 weighted indices in five dimensions: pure arithmetic over the tables, shown step by step.

Indices that follow from the tables are computed; the others are in vendors.csv, each with its source. An index without
a known value for a vendor scores 0 there and is listed as unknown: no score is guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache

from infra import registry
from infra.catalog import Catalog, Gpu, InstanceType
from infra.catalog.selection import AskError, Exchange
from infra.catalog.table import TABLES, read

TODAY = date(2026, 11, 21)  # of the tables: the same figures whenever somebody looks
COMPUTED = "computed from the tables"
LARGE_GIB = 79  # a GPU of 80 GB and more


@dataclass(frozen=True, kw_only=True)
class Cited:
    """One row of vendors.csv: a fact that does not follow from the tables of types."""

    vendor: str
    index: str
    value: float
    source: str
    date: date


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """What a vendor sells, as the tables have it. exchange: for prices in another currency than dollars."""

    vendor: str
    catalog: Catalog
    exchange: Exchange | None

    @property
    def types(self) -> list[InstanceType]:
        return [kind for kind in self.catalog.types if kind.cloud == self.vendor and kind.gpu]

    @property
    def gpus(self) -> list[Gpu]:
        return [self.catalog.gpu(name) for name in sorted({kind.gpu for kind in self.types if kind.gpu})]

    def prices(self) -> Iterable[tuple[InstanceType, float]]:
        """Each type with the dollars that a node costs an hour where it costs least; those that have a price."""
        for kind in self.types:
            price = next(iter(self.catalog.prices_of(kind.name)), None)
            if price is None:
                continue
            if price.currency == "USD":
                yield kind, price.on_demand_per_hour
            elif self.exchange is not None and self.exchange.currency == price.currency:
                yield kind, price.on_demand_per_hour / self.exchange.per_usd


Value = Callable[[Fleet], float | None]


@dataclass(frozen=True, kw_only=True)
class Index:
    """weight: its part of the 100. less: less is better. value: None where it is cited."""

    name: str
    unit: str
    weight: float
    less: bool = False
    value: Value | None = None


def _most(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _least(values: Iterable[float]) -> float | None:
    return min(values, default=None)


def _work(fleet: Fleet) -> Iterable[float]:
    """USD per PFLOP-hour of each priced type, in bf16."""
    for kind, usd in fleet.prices():
        rate = fleet.catalog.rate(fleet.catalog.gpu(kind.gpu or ""), "bf16")
        if rate is not None:
            yield usd / (kind.gpu_count * kind.gpu_share * rate.tflops / 1000)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _age_days(fleet: Fleet) -> float | None:
    days = [price.date for kind in fleet.types for price in fleet.catalog.prices_of(kind.name)]
    return float((TODAY - max(days)).days) if days else None


DIMENSIONS: Mapping[str, tuple[Index, ...]] = {
    "compute": (
        Index(
            name="fastest_gpu",
            unit="dense bf16 TFLOPS",
            weight=8,
            value=lambda f: _most(gpu.dense_tflops("bf16") for gpu in f.gpus),
        ),
        Index(
            name="largest_gpu_memory", unit="GiB", weight=5, value=lambda f: _most(k.gpu_memory_gib for k in f.types)
        ),
        Index(
            name="fastest_gpu_memory", unit="GB/s", weight=4, value=lambda f: _most(g.memory_gb_per_s for g in f.gpus)
        ),
        Index(
            name="fastest_nvlink",
            unit="GB/s",
            weight=4,
            value=lambda f: _most(f.catalog.gpu(k.gpu or "").nvlink_gb_per_s for k in f.types if k.nvlink),
        ),
        Index(
            name="fastest_fabric", unit="Gbit/s a node", weight=6, value=lambda f: _most(k.fabric_gbps for k in f.types)
        ),
        Index(name="largest_node", unit="GPUs", weight=3, value=lambda f: _most(k.gpu_count for k in f.types)),
    ),
    "cost": (
        Index(name="cheapest_work", unit="USD/PFLOP-h", weight=10, less=True, value=lambda f: _least(_work(f))),
        Index(
            name="cheapest_large_gpu",
            unit="USD/GPU-h",
            weight=6,
            less=True,
            value=lambda f: _least(
                usd / k.gpu_count for k, usd in f.prices() if k.gpu_share == 1 and (k.gpu_memory_gib or 0) >= LARGE_GIB
            ),
        ),
        Index(
            name="cheapest_gpu",
            unit="USD/GPU-h",
            weight=3,
            less=True,
            value=lambda f: _least(usd / k.gpu_count for k, usd in f.prices() if k.gpu_share == 1),
        ),
        Index(name="priced_types", unit="share", weight=3, value=lambda f: _share(len(list(f.prices())), len(f.types))),
        Index(name="age_of_prices", unit="days", weight=3, less=True, value=_age_days),
    ),
    "supply": (
        Index(name="gpu_models", unit="models", weight=5, value=lambda f: float(len(f.gpus))),
        Index(name="gpu_types", unit="types", weight=3, value=lambda f: float(len(f.types))),
        Index(
            name="generations",
            unit="architectures",
            weight=4,
            value=lambda f: float(len({g.architecture for g in f.gpus})),
        ),
        Index(name="priced_regions", unit="regions", weight=4, value=lambda f: float(len(f.catalog.regions(f.vendor)))),
        Index(
            name="types_with_fabric",
            unit="types",
            weight=4,
            value=lambda f: float(sum(k.fabric is not None for k in f.types)),
        ),
    ),
    "operation": (
        Index(name="notice_minutes", unit="minutes before a spot node goes", weight=5),
        Index(name="reserved_kinds", unit="ways to hold capacity", weight=4),
        Index(name="deployable", unit="by this project", weight=4, value=lambda f: float(f.vendor in registry.CLOUDS)),
        Index(
            name="known_cards",
            unit="share of fabric types",
            weight=2,
            value=lambda f: _share(
                sum(bool(k.fabric_interfaces) for k in f.types if k.fabric), sum(k.fabric is not None for k in f.types)
            ),
        ),
    ),
    "openness": (
        Index(name="metadata_tokens", unit="can be required", weight=3),
        Index(name="managed_kubernetes", unit="is sold", weight=3),
        Index(
            name="spot_types",
            unit="share of types",
            weight=4,
            value=lambda f: _share(sum("spot" in k.usage_classes for k in f.types), len(f.types)),
        ),
    ),
}
WEIGHTS = {name: sum(index.weight for index in indices) for name, indices in DIMENSIONS.items()}  # 30, 25, 20, 15, 10


@dataclass(frozen=True, kw_only=True)
class Scored:
    """An index of a vendor. score: of 10, the best vendor's; None where the value is unknown."""

    index: Index
    value: float | None
    score: float | None
    source: str


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """A vendor's indices by dimension. weights: of the dimensions, as requested."""

    vendor: str
    weights: Mapping[str, float]
    scored: Mapping[str, tuple[Scored, ...]]

    def points(self, dimension: str) -> float:
        """Of the dimension's weight: the sum of score times weight over all its indices, an unknown one as 0."""
        scale = self.weights[dimension] / WEIGHTS[dimension]
        return scale * sum((each.score or 0.0) / 10 * each.index.weight for each in self.scored[dimension])

    @property
    def total(self) -> float:
        """Of 100."""
        return 100 * sum(map(self.points, self.scored)) / sum(self.weights.values())


@cache
def cited() -> Mapping[tuple[str, str], Cited]:
    return {(row.vendor, row.index): row for row in read(TABLES / "vendors.csv", Cited)}


def evaluate(
    catalog: Catalog, exchange: Exchange | None, weights: Mapping[str, float] | None = None
) -> tuple[Evaluation, ...]:
    """Every vendor of the tables, best first. weights: in place of those of some dimensions. Raises AskError."""
    shares = {**WEIGHTS, **(weights or {})}
    if unknown := sorted(shares.keys() - WEIGHTS.keys()):
        raise AskError(f"weights: '{unknown[0]}' is none of {', '.join(WEIGHTS)}")
    if min(shares.values()) < 0 or not any(shares.values()):
        raise AskError("weights: none may be below 0, and one must be above")
    fleets = [Fleet(vendor=vendor, catalog=catalog, exchange=exchange) for vendor in catalog.clouds]
    values = {(fleet.vendor, index.name): _value(fleet, index) for fleet in fleets for index in _indices()}
    evaluations = [
        Evaluation(
            vendor=fleet.vendor,
            weights=shares,
            scored={
                name: tuple(_scored(fleet.vendor, index, fleets, values) for index in indices)
                for name, indices in DIMENSIONS.items()
            },
        )
        for fleet in fleets
    ]
    return tuple(sorted(evaluations, key=lambda evaluation: (-evaluation.total, evaluation.vendor)))


def _indices() -> Iterable[Index]:
    return (index for indices in DIMENSIONS.values() for index in indices)


def _value(fleet: Fleet, index: Index) -> float | None:
    if index.value is not None:
        return index.value(fleet)
    row = cited().get((fleet.vendor, index.name))
    return None if row is None else row.value


def _scored(vendor: str, index: Index, fleets: list[Fleet], values: Mapping[tuple[str, str], float | None]) -> Scored:
    """The best gets 10, the others their part of it."""
    value = values[vendor, index.name]
    known = [each for fleet in fleets if (each := values[fleet.vendor, index.name]) is not None]
    row = cited().get((vendor, index.name))
    source = COMPUTED if index.value is not None else f"{row.source} ({row.date})" if row else "not known"
    if value is None:
        return Scored(index=index, value=None, score=None, source=source)
    best = min(known) if index.less else max(known)
    part = (best / value if value else 1.0) if index.less else (value / best if best else 0.0)
    return Scored(index=index, value=value, score=10 * part, source=source)
