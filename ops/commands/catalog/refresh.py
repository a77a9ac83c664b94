"""`gpufleet catalog refresh`: rewrites the tables of the catalog from the providers' APIs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from infra.catalog import Catalog, InstanceType, Offering, Price, SpotPrice, TableError, load, table
from infra.catalog.merge import Answers, Change, merge, together
from infra.catalog.table import TABLES
from ops.clouds import base
from ops.console.phases import Phases
from ops.console.terminal import Json, Screen, Yes, confirmed, show, write
from ops.errors import CommandError

Document = dict[str, Any]

STATES = {"new": "new", "changed": "changed", "gone": "gone", "kept": "kept (absent from the response)"}


def command(
    region: Annotated[
        list[str] | None, typer.Option(help="query this region; can be repeated; default: all that have prices")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="show what would change, write nothing")] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Rewrite the tables from the providers' APIs: types, offerings, prices, spot. Shows the changes, and asks."""

    def confirm(document: dict[str, Any]) -> bool:
        write(text(document), error=as_json)
        return not dry_run and (yes or confirmed("write the tables?"))

    document = refresh(region or (), Phases(Screen(), quiet=as_json), confirm)
    show(document, as_json, lambda _: "written" if document["written"] else "nothing was written")


def refresh(
    regions: Sequence[str], phases: Phases, confirm: Callable[[Document], bool], folder: Path = TABLES
) -> Document:
    """Queries the provider for each region (by default those that have prices) and writes what changed.

    confirm: called with the changes before anything is written. Raises CommandError where the API does not answer, or
    where its answers contradict the tables; then nothing is written.
    """
    cloud, source = base.contributed("catalog_source")
    before = load(folder)
    answered: list[Answers] = []
    for region in regions or before.regions(cloud):
        with phases.phase(region) as phase:
            answer: Answers = source.ask(region, before, phase.say)
            answered.append(answer)
            phase.say(f"{len(answer.types)} types, {len(answer.prices)} prices, {len(answer.spot)} spot prices")
    answers = together(answered)
    try:
        merged = merge(before, answers, cloud)
    except TableError as error:
        raise CommandError(*error.problems, "the API's answers contradict the tables: nothing was written") from None
    document = {
        "regions": list(answers.regions),
        "changes": [plain(change) for change in merged.changes],
        "left_out": list(answers.left_out),
        "confirmed": merged.confirmed,
    }
    written = confirm(document) and merged.catalog != before
    if written:
        save(merged.catalog, folder)
    return document | {"written": written}


def save(tables: Catalog, folder: Path) -> None:
    """Types first, since the other tables refer to them."""
    table.write(folder / "types.csv", tables.types, InstanceType)
    table.write(folder / "prices.csv", tables.prices, Price)
    table.write(folder / "offerings.csv", tables.offerings, Offering)
    table.write(folder / "spot.csv", tables.spot, SpotPrice)
    load.cache_clear()


def plain(change: Change) -> Document:
    cells = {column: {"before": cell(before), "after": cell(after)} for column, before, after in change.cells}
    return {"table": change.table, "row": change.row, "kind": change.kind, "cells": cells}


def cell(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def text(document: Document) -> str:
    """The changes, table by table; rows that were only confirmed are counted."""
    lines = [line for change in document["changes"] for line in change_lines(change)]
    lines += [f"left out  {line}" for line in document["left_out"]]
    kinds = Counter(change["kind"] for change in document["changes"])
    total = ", ".join(f"{kinds[kind]} {kind}" for kind in STATES if kinds[kind]) or "nothing changed"
    return "\n".join([*lines, f"{total}, {document['confirmed']} confirmed"])


def change_lines(change: Document) -> list[str]:
    head = f"{change['table']:<9} {change['row']:<34} {STATES[change['kind']]}"
    return [
        head,
        *(f"{'':<10}{column}: {cell['before']} → {cell['after']}" for column, cell in change["cells"].items()),
    ]
