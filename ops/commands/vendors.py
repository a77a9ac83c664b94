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
        evaluations = vendors.evaluate(catalog.load(), exchange(rate), _weights(weights))
    except AskError as mistake:
        raise CommandError(str(mistake), code=2) from None
    return {
        "weights": dict(evaluations[0].weights),
        "rate": rate,
        "vendors": [_vendor(vendor) for vendor in evaluations],
    }


def _weights(text: str) -> dict[str, float]:
    """Raises AskError."""
    weights: dict[str, float] = {}
    for part in filter(None, text.split(",")):
        name, _, weight = part.partition("=")
        try:
            weights[name] = float(weight)
        except ValueError:
            raise AskError(f"weights: '{part}' is not a weight, such as cost=40") from None
    return weights


def _vendor(evaluation: Evaluation) -> Document:
    dimensions = [
        {
            "name": name,
            "weight": evaluation.weights[name],
            "points": round(evaluation.points(name), 4),
            "indices": [_index(index) for index in scored],
        }
        for name, scored in evaluation.scored.items()
    ]
    unknown = [index.index.name for scored in evaluation.scored.values() for index in scored if index.value is None]
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


def text(document: Document) -> str:
    """One line a vendor, one a dimension below it, and the formula of the sum."""
    total = sum(document["weights"].values())
    lines = [
        "  points = Σ over dimensions of (weight × Σ score/10 × index weight / Σ index weights); score: best = 10",
        "",
    ]
    for vendor in document["vendors"]:
        lines.append(f"{vendor['vendor']:<10} {vendor['score']:>6.2f} of 100")
        for dimension in vendor["dimensions"]:
            parts = " + ".join(map(_part, dimension["indices"]))
            lines.append(f"  {dimension['name']:<10} {dimension['points']:>5.2f} of {dimension['weight']:g}   {parts}")
        if vendor["unknown"]:
            lines.append(f"  not known, counted as 0: {', '.join(vendor['unknown'])}")
    return "\n".join([*lines, "", f"  weights: {document['weights']}, {total:g} in all; --weights changes them"])


def _part(index: Document) -> str:
    score = "?" if index["score"] is None else f"{index['score']:.1f}"
    return f"{index['name']} {score}×{index['weight']:g}"
