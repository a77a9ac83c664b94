"""The tables together: look-ups by name, and what must hold between them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from infra.catalog.rows import Extra, Gpu, InstanceType, Offering, Precision, Price, SpotPrice
from infra.catalog.table import TABLES, TableError, read, twice


class UnknownNameError(ValueError):
    """A name that is not in the tables: one line, with the name that was probably meant."""

    what = "name"

    def __init__(self, name: str, known: Iterable[str]) -> None:
        from infra.suggest import hint  # only a mistake pays for it

        super().__init__(f"unknown {self.what} '{name}'{hint(name, known)}")


class UnknownTypeError(UnknownNameError):
    """An instance type that is not in types.csv."""

    what = "instance type"


class UnknownGpuError(UnknownNameError):
    """A GPU that is not in gpus.csv."""

    what = "GPU"


class UnknownRegionError(ValueError):
    """A region that no row of prices.csv names for a cloud: it may well exist, but nothing can be priced there."""

    def __init__(self, region: str, known: Iterable[str]) -> None:
        super().__init__(f"no price is known in region '{region}'; the tables know {', '.join(known)}")


@dataclass(frozen=True, kw_only=True)
class Rate:
    """What one GPU computes. measured: False where it is an estimate from the dense peak."""

    tflops: float
    measured: bool


@dataclass(frozen=True, kw_only=True)
class Catalog:
    """What exists, as frozen rows. Raises TableError when rows contradict each other; lists every contradiction."""

    types: tuple[InstanceType, ...]
    gpus: tuple[Gpu, ...]
    prices: tuple[Price, ...]
    offerings: tuple[Offering, ...] = ()
    extras: tuple[Extra, ...] = ()
    spot: tuple[SpotPrice, ...] = ()

    def __post_init__(self) -> None:
        if problems := [*_duplicates(self), *_strangers(self), *_impossible(self)]:
            raise TableError(problems)

    @cached_property
    def _types(self) -> dict[str, InstanceType]:
        return {kind.name: kind for kind in self.types}

    @cached_property
    def _gpus(self) -> dict[str, Gpu]:
        return {gpu.name: gpu for gpu in self.gpus}

    @cached_property
    def _prices(self) -> dict[tuple[str, str], Price]:
        return {(price.type, price.region): price for price in self.prices}

    @cached_property
    def _offered(self) -> Mapping[str, Set[str]]:
        """The regions that have each type."""
        regions: defaultdict[str, set[str]] = defaultdict(set)
        for offering in self.offerings:
            regions[offering.type].add(offering.region)
        return regions

    @cached_property
    def clouds(self) -> tuple[str, ...]:
        """The clouds that rent any of the types."""
        return tuple(sorted({kind.cloud for kind in self.types}))

    @cached_property
    def _regions(self) -> Mapping[str, tuple[str, ...]]:
        priced: defaultdict[str, set[str]] = defaultdict(set)
        for price in self.prices:
            priced[self._types[price.type].cloud].add(price.region)
        return {cloud: tuple(sorted(regions)) for cloud, regions in priced.items()}

    def regions(self, cloud: str) -> tuple[str, ...]:
        """The regions of a cloud where a price is known; two clouds may each have a us-east-1."""
        return self._regions.get(cloud, ())

    def type(self, name: str) -> InstanceType:
        """Raises UnknownTypeError."""
        if name not in self._types:
            raise UnknownTypeError(name, self._types)
        return self._types[name]

    def gpu(self, name: str) -> Gpu:
        """Raises UnknownGpuError."""
        if name not in self._gpus:
            raise UnknownGpuError(name, self._gpus)
        return self._gpus[name]

    def price(self, type_name: str, region: str) -> Price | None:
        """What a type costs on demand, None where no price is known. Raises UnknownTypeError, UnknownRegionError."""
        known = self.regions(self.type(type_name).cloud)
        if region not in known:
            raise UnknownRegionError(region, known)
        return self._prices.get((type_name, region))

    def prices_of(self, type_name: str) -> tuple[Price, ...]:
        """What a type costs on demand wherever a price is known, least first."""
        prices = [price for price in self.prices if price.type == type_name]
        return tuple(sorted(prices, key=lambda price: price.on_demand_per_hour))

    def offered(self, type_name: str, region: str) -> bool | None:
        """Whether any zone of the region has the type; None where the tables say nothing of the type or region."""
        if type_name not in self._offered or region not in self._offering_regions:
            return None
        return region in self._offered[type_name]

    @cached_property
    def _offering_regions(self) -> Set[str]:
        return {offering.region for offering in self.offerings}

    def extra(self, item: str, region: str) -> Extra | None:
        """What something beside the nodes costs, None where no price is known."""
        return next((extra for extra in self.extras if (extra.item, extra.region) == (item, region)), None)

    def spot_prices(self, type_name: str, region: str) -> tuple[SpotPrice, ...]:
        """What the type cost as spot in each zone that was watched."""
        return tuple(price for price in self.spot if (price.type, price.region) == (type_name, region))

    def rate(self, gpu: Gpu, precision: Precision) -> Rate | None:
        """The measured rate; without one, the dense peak times `least_measured_share`; None without either.

        Peaks and measurements cannot be ranked beside each other: measured rates are 73 to 87 % of the peak.
        """
        if measured := gpu.measured_tflops(precision):
            return Rate(tflops=measured, measured=True)
        if dense := gpu.dense_tflops(precision):
            return Rate(tflops=dense * self.least_measured_share, measured=False)
        return None

    @cached_property
    def least_measured_share(self) -> float:
        """The smallest part of its dense peak that any measured GPU reaches; 1 when none was measured."""
        return min((gpu.measured_share for gpu in self.gpus if gpu.measured_share is not None), default=1.0)


@cache
def load(folder: Path = TABLES) -> Catalog:
    """The tables of a folder, read once. Raises TableError."""
    return Catalog(
        types=read(folder / "types.csv", InstanceType),
        gpus=read(folder / "gpus.csv", Gpu),
        prices=read(folder / "prices.csv", Price),
        offerings=read(folder / "offerings.csv", Offering),
        spot=read(folder / "spot.csv", SpotPrice),
        extras=read(folder / "extras.csv", Extra),
    )


def _duplicates(catalog: Catalog) -> Iterator[str]:
    yield from (f"types.csv: {name} stands there twice" for name in twice(kind.name for kind in catalog.types))
    yield from (f"gpus.csv: {name} stands there twice" for name in twice(gpu.name for gpu in catalog.gpus))
    keys = twice((price.type, price.region) for price in catalog.prices)
    yield from (f"prices.csv: {name} in {region} stands there twice" for name, region in keys)
    keys = twice((offering.type, offering.region) for offering in catalog.offerings)
    yield from (f"offerings.csv: {name} in {region} stands there twice" for name, region in keys)
    keys = twice((extra.item, extra.region) for extra in catalog.extras)
    yield from (f"extras.csv: {item} in {region} stands there twice" for item, region in keys)
    zones = twice((price.type, price.zone_id) for price in catalog.spot)
    yield from (f"spot.csv: {name} in {zone} stands there twice" for name, zone in zones)


def _strangers(catalog: Catalog) -> Iterator[str]:
    types, gpus = {kind.name for kind in catalog.types}, {gpu.name for gpu in catalog.gpus}
    for kind in catalog.types:
        if kind.gpu is not None and kind.gpu not in gpus:
            yield f"types.csv: {kind.name} has the GPU {kind.gpu}, which is not in gpus.csv"
    for table, rows in (("prices", catalog.prices), ("offerings", catalog.offerings), ("spot", catalog.spot)):
        for name in dict.fromkeys(row.type for row in rows):
            if name not in types:
                yield f"{table}.csv: {name} is not in types.csv"


def _impossible(catalog: Catalog) -> Iterator[str]:
    for kind in catalog.types:
        if (kind.gpu is None) != (kind.gpu_count == 0):
            yield f"types.csv: {kind.name} has {kind.gpu_count} GPUs of the kind {kind.gpu}"
        if kind.fabric is None and kind.fabric_interfaces != 0:
            yield f"types.csv: {kind.name} has fabric interfaces without a fabric"
        if kind.fabric and not _carried(kind):
            yield f"types.csv: {kind.name} has other fabric interfaces than its cards carry"
    for gpu in catalog.gpus:
        if (gpu.measured_share or 0) > 1:
            yield f"gpus.csv: {gpu.name} was measured above its dense peak"


def _carried(kind: InstanceType) -> bool:
    """Every card carries one fabric interface, but for a first card that is kept for the plain network."""
    if kind.fabric_interfaces is None or kind.network_cards is None:
        return True
    return kind.fabric_interfaces == kind.network_cards - (0 if kind.fabric_on_first_card else 1)
