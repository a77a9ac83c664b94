"""`gpufleet vendors`: the vendors of the tables by 23 weighted indices, with the arithmetic."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from infra import catalog
from infra.catalog import vendors
from infra.catalog.selection import AskError
from infra.catalog.vendors import Evaluation, Scored
from ops.commands.select import exchange
from ops.console.terminal import Json, Rate, show
from ops.errors import CommandError

Document = dict[str, Any]


def command(
    weights: Annotated[
        str, typer.Option(metavar="NAME=WEIGHT,…", help="of compute, cost, supply, operation, openness")
    ] = "",
    rate: Rate = None,
    as_json: Json = False,
) -> None:
    """Compare the vendors of the tables by 23 weighted indices, with the arithmetic."""
    show(compare(rate, weights), as_json, text)


def compare(rate: str | None = None, weights: str = "") -> Document:
    """The document of `--json`. weights: `cost=40,compute=20`. Raises CommandError, code 2."""
    try:
        found = vendors.evaluate(catalog.load(), exchange(rate), _weights(weights))
    except AskError as mistake:
        raise CommandError(str(mistake), code=2) from None
    return {"weights": dict(found[0].weights), "rate": rate, "vendors": [_told(each) for each in found]}


def _weights(text: str) -> dict[str, float]:
    """Raises AskError."""
    found: dict[str, float] = {}
    for part in filter(None, text.split(",")):
        name, _, weight = part.partition("=")
        try:
            found[name] = float(weight)
        except ValueError:
            raise AskError(f"weights: '{part}' is no weight, such as cost=40") from None
    return found


def _told(evaluation: Evaluation) -> Document:
    dimensions = [
        {
            "name": name,
            "weight": evaluation.weights[name],
            "points": round(evaluation.points(name), 4),
            "indices": [_index(each) for each in scored],
        }
        for name, scored in evaluation.scored.items()
    ]
    unknown = [each.index.name for scored in evaluation.scored.values() for each in scored if each.value is None]
    return {
        "vendor": evaluation.vendor,
        "score": round(evaluation.total, 2),
        "unknown": unknown,
        "dimensions": dimensions,
    }


def _index(scored: Scored) -> Document:
    return {
        "name": scored.index.name,
        "unit": scored.index.unit,
        "weight": scored.index.weight,
        "value": scored.value if scored.value is None else round(scored.value, 4),
        "score": scored.score if scored.score is None else round(scored.score, 4),
        "source": scored.source,
    }


def text(told: Document) -> str:
    """One line a vendor, one a dimension below it, and how the sum is made."""
    total = sum(told["weights"].values())
    lines = [
        "  points = Σ over dimensions of (weight × Σ score/10 × index weight / Σ index weights); score: best = 10",
        "",
    ]
    for each in told["vendors"]:
        lines.append(f"{each['vendor']:<10} {each['score']:>6.2f} of 100")
        for dimension in each["dimensions"]:
            parts = " + ".join(map(_part, dimension["indices"]))
            lines.append(f"  {dimension['name']:<10} {dimension['points']:>5.2f} of {dimension['weight']:g}   {parts}")
        if each["unknown"]:
            lines.append(f"  not known, counted as 0: {', '.join(each['unknown'])}")
    return "\n".join([*lines, "", f"  weights: {told['weights']}, {total:g} in all; --weights changes them"])


def _part(index: Document) -> str:
    score = "?" if index["score"] is None else f"{index['score']:.1f}"
    return f"{index['name']} {score}×{index['weight']:g}"
