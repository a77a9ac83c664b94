"""Merges the answers of one cloud into the tables: the changes, and the rows that remain without being confirmed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from infra.catalog.catalog import Catalog
from infra.catalog.rows import InstanceType, Offering, Price, SpotPrice

ABOUT_THE_ROW = ("source", "date")  # they change whenever somebody looks again
OURS = ("notes",)  # no answer has them
OFTEN_WORDS = ("network_gbps", "network_burst")  # "Moderate"

Row = TypeVar("Row", InstanceType, Offering, Price, SpotPrice)


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What a cloud said of these regions. left_out: what it has and the tables cannot hold, one line each."""

    regions: tuple[str, ...]
    types: tuple[InstanceType, ...]
    offerings: tuple[Offering, ...]
    prices: tuple[Price, ...]
    spot: tuple[SpotPrice, ...]
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Change:
    """One row that is new, changed, removed, or retained though the cloud lacks it. cells: (column, before, after)."""

    table: str
    row: str
    kind: str
    cells: tuple[tuple[str, Any, Any], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Merged:
    """The tables as they would be. confirmed: how many rows came again with the same figures."""

    catalog: Catalog
    changes: tuple[Change, ...]
    confirmed: int


def together(said: Sequence[Answers]) -> Answers:
    """What one cloud said of several regions. A type is the same wherever it is sold."""
    types = {kind.name: kind for answers in said for kind in answers.types}
    return Answers(
        regions=tuple(region for answers in said for region in answers.regions),
        types=tuple(types.values()),
        offerings=tuple(row for answers in said for row in answers.offerings),
        prices=tuple(row for answers in said for row in answers.prices),
        spot=tuple(row for answers in said for row in answers.spot),
        left_out=tuple(dict.fromkeys(line for answers in said for line in answers.left_out)),
    )


def merge(old: Catalog, new: Answers, cloud: str) -> Merged:
    """Types and prices that the answer lacks are retained: they may be from another source, or no longer be sold.

    Offerings and spot prices are of this moment: where the cloud was queried, its answer replaces all. Other clouds and
    other regions stay as they are. Raises TableError where the rows contradict each other.
    """

    def of_cloud(row: InstanceType) -> bool:
        return row.cloud == cloud

    types, type_changes = _merged("types", old.types, new.types, lambda row: row.name, keep=of_cloud)
    regions, others = set(new.regions), {kind.name for kind in old.types if not of_cloud(kind)}

    def here(row: Price | Offering | SpotPrice) -> bool:
        return row.region in regions and row.type not in others  # another cloud may have a region of that name

    prices, price_changes = _merged("prices", old.prices, new.prices, _place, keep=here)
    offerings, offering_changes = _merged("offerings", old.offerings, new.offerings, _place, drop=here)
    spot, spot_changes = _merged("spot", old.spot, new.spot, lambda row: f"{row.type} in {row.zone_id}", drop=here)
    changes = (*type_changes, *price_changes, *offering_changes, *spot_changes)
    rows = len(new.types) + len(new.prices) + len(new.offerings) + len(new.spot)
    fresh = sum(change.kind in ("new", "changed") for change in changes)
    catalog = Catalog(types=types, gpus=old.gpus, prices=prices, offerings=offerings, spot=spot, extras=old.extras)
    return Merged(catalog=catalog, changes=changes, confirmed=rows - fresh)


def _merged(
    table: str,
    old: Sequence[Row],
    new: Sequence[Row],
    key: Callable[[Row], str],
    *,
    keep: Callable[[Row], bool] | None = None,
    drop: Callable[[Row], bool] | None = None,
) -> tuple[tuple[Row, ...], list[Change]]:
    """Old rows in their order, new ones behind them. keep: rows to tell of when they are not in the answer; drop: rows
    that then go."""
    fresh = {key(row): row for row in new}
    rows: list[Row] = []
    changes: list[Change] = []
    for row in old:
        name = key(row)
        if name in fresh:
            rows.append(_with_our_words(row, fresh.pop(name)))
            if cells := tuple(_differences(row, rows[-1])):
                changes.append(Change(table=table, row=name, kind="changed", cells=cells))
        elif drop is not None and drop(row):
            changes.append(Change(table=table, row=name, kind="gone"))
        else:
            rows.append(row)
            if keep is not None and keep(row):
                changes.append(Change(table=table, row=name, kind="kept"))
    changes += [Change(table=table, row=name, kind="new") for name in fresh]
    return (*rows, *fresh.values()), changes


def _with_our_words(old: Row, new: Row) -> Row:
    """What no API says stays: our notes, and speeds for which it has only words."""
    ours = {
        name: getattr(old, name)
        for name in (field.name for field in fields(new))
        if name in OURS or (name in OFTEN_WORDS and getattr(new, name) is None)
    }
    return replace(new, **ours)


def _differences(old: Row, new: Row) -> Iterator[tuple[str, Any, Any]]:
    for field in fields(new):
        before, after = getattr(old, field.name), getattr(new, field.name)
        if field.name not in ABOUT_THE_ROW and before != after:
            yield field.name, before, after


def _place(row: Price | Offering) -> str:
    return f"{row.type} in {row.region}"
