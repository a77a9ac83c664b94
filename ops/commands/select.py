"""`gpufleet select`: the instance types that fit a job, cheapest work first, from tables: no network or credentials."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date
from typing import Annotated, Any

import typer

from infra import catalog, registry
from infra.catalog import FabricNeed, Precision, UnknownRegionError, selection
from infra.catalog.selection import Ask, AskError, Choice, Exchange, Offer
from ops.console.terminal import Json, Rate, show
from ops.errors import CommandError

Document = dict[str, Any]
SHOWN = 12  # rows that a person reads; --json has them all
RENTED = catalog.load().clouds
DEPLOYED = tuple(cloud for cloud in registry.CLOUDS if cloud in RENTED)  # the clouds of the tables that `up` knows


def command(
    gpus: Annotated[int, typer.Option(min=1, help="how many GPUs", show_default=False)],
    region: Annotated[
        str | None, typer.Option(help="where, e.g. us-east-1; without it each type where it costs least")
    ] = None,
    gpu_memory: Annotated[float, typer.Option(metavar="GIB", help="usable memory of each GPU, at least")] = 0.0,
    precision: Annotated[Precision, typer.Option(help="format of the matrix products")] = "bf16",
    fabric: Annotated[FabricNeed, typer.Option(help="a fast network between nodes")] = "preferred",
    budget: Annotated[float | None, typer.Option(metavar="USD", help="at most, per hour, all nodes")] = None,
    clouds: Annotated[str, typer.Option(metavar="NAME,…", help=f"of {', '.join(RENTED)}: in one table")] = DEPLOYED[0],
    rate: Rate = None,
    as_json: Json = False,
) -> None:
    """Rank the instance types that fit a job by the price of its work."""
    ranking = select(
        gpus=gpus,
        region=region,
        gpu_memory_gib=gpu_memory,
        precision=precision,
        fabric=fabric,
        budget_usd_per_hour=budget,
        rate=rate,
        clouds=clouds.split(","),
    )
    show(ranking, as_json, text)


def select(
    *,
    gpus: int,
    region: str | None = None,
    gpu_memory_gib: float = 0.0,
    precision: Precision = "bf16",
    fabric: FabricNeed = "preferred",
    budget_usd_per_hour: float | None = None,
    rate: str | None = None,
    clouds: Sequence[str] = DEPLOYED[:1],
) -> Document:
    """The document of `--json`; see `Ask` for the parameters. rate: `CNY=7.10@2026-11-20`, units for a dollar on a day.

    Raises CommandError, code 2, for invalid parameters.
    """
    tables = catalog.load()
    try:
        ask = Ask(
            gpus=gpus,
            region=region,
            gpu_memory_gib=gpu_memory_gib,
            precision=precision,
            fabric=fabric,
            budget_usd_per_hour=budget_usd_per_hour,
            exchange=exchange(rate),
            clouds=tuple(clouds),
        )
        return document(ask, selection.choose(ask, tables), tables.least_measured_share)
    except (AskError, UnknownRegionError) as mistake:
        raise CommandError(str(mistake), code=2) from None


def exchange(rate: str | None) -> Exchange | None:
    """Raises AskError."""
    if rate is None:
        return None
    match = re.fullmatch(r"([A-Z]{3})=(\d+(?:\.\d+)?)@(\d{4}-\d{2}-\d{2})", rate)
    if match is None:
        raise AskError(f"rate: '{rate}' is not a rate with its day, such as CNY=7.10@2026-11-20")
    currency, amount, day = match.groups()
    try:
        return Exchange(currency=currency, per_usd=float(amount), date=date.fromisoformat(day))
    except ValueError:
        raise AskError(f"rate: '{day}' is not a date") from None


def document(ask: Ask, chosen: Choice, least_measured_share: float) -> Document:
    return {
        "ask": asdict(ask) | {"clouds": list(ask.clouds), "exchange": _exchange_document(ask.exchange)},
        "ranked": [_ranked(offer) for offer in chosen.ranked],
        "rejected": [asdict(rejected) for rejected in chosen.rejected],
        "estimate": {"share_of_dense_peak": round(least_measured_share, 4)},
    }


def _exchange_document(exchange: Exchange | None) -> Document | None:
    return None if exchange is None else asdict(exchange) | {"date": exchange.date.isoformat()}


def _ranked(offer: Offer) -> Document:
    kind = offer.kind
    return {
        "type": kind.name,
        "cloud": kind.cloud,
        "region": offer.price.region,
        "deployable": kind.cloud in DEPLOYED,
        "nodes": offer.nodes,
        "gpus": offer.gpus,
        "gpu": offer.gpu.name,
        "gpu_memory_gib": round(kind.gpu_memory_gib or 0, 1),
        "nvlink": kind.nvlink,
        "fabric": kind.fabric,
        "fabric_gbps": kind.fabric_gbps,
        "usd_per_hour": round(offer.usd_per_hour, 4),
        "usd_per_gpu_hour": round(offer.usd_per_gpu_hour, 4),
        "usd_per_pflop_hour": round(offer.usd_per_pflop_hour, 4),
        "tflops_per_gpu": round(offer.rate.tflops, 1),
        "measured": offer.rate.measured,
        "price": {
            "per_node_hour": offer.price.on_demand_per_hour,
            "currency": offer.price.currency,
            "date": offer.price.date.isoformat(),
            "source": offer.price.source,
        },
    }


def text(document: Document) -> str:
    """The ranking as a table, the sources of its figures, and the rejected types by reason."""
    ask, ranked = document["ask"], document["ranked"]
    lines = [headline(ask), ""]
    if ranked:
        wide = ask["region"] is None
        lines += ["  USD/PFLOP-h     USD/h  USD/GPU-h", *(row(offer, wide) for offer in ranked[:SHOWN])]
        lines += [f"  … {hidden} more with --json"] if (hidden := len(ranked) - SHOWN) > 0 else []
        lines += ["", *(f"  {note}" for note in notes(document))]
    else:
        lines += ["  no type fits"]
    if document["rejected"]:
        lines += ["", "  not fit:", *(f"    {reason}: {names}" for reason, names in by_reason(document))]
    if others := undeployable(document):
        lines += ["", f"  not deployable yet: {', '.join(others)} (for comparison only)"]
    return "\n".join(lines)


def headline(ask: Document) -> str:
    memory = f" of {ask['gpu_memory_gib']:g} GiB or more" if ask["gpu_memory_gib"] else ""
    budget = ask["budget_usd_per_hour"]
    parts = [f"{ask['gpus']} GPU{'s' if ask['gpus'] > 1 else ''}{memory}", ask["precision"], f"fabric {ask['fabric']}"]
    parts += [
        ask["region"] or f"{', '.join(ask['clouds']) or 'every cloud'}, each type where it costs least",
        *([] if budget is None else [f"at most {budget:g} USD/h"]),
    ]
    return " · ".join(parts)


def row(offer: Document, wide: bool = False) -> str:
    """wide: with the region, where it is not the same for all."""
    work = f"{'' if offer['measured'] else '~'}{offer['usd_per_pflop_hour']:.2f}"
    per_node = offer["gpus"] // offer["nodes"]
    hardware = f"{per_node} × {offer['gpu']} {offer['gpu_memory_gib']:g} GiB{' NVLink' if offer['nvlink'] else ''}"
    fabric = f" · {offer['fabric']} {offer['fabric_gbps']:g} Gbit/s" if offer["fabric"] else ""
    money = f"{work:>13}{offer['usd_per_hour']:>10.2f}{offer['usd_per_gpu_hour']:>11.2f}"
    place = f" · {offer['cloud']} {offer['region']}" if wide else ""
    return f"{money}  {offer['nodes']:>3} × {offer['type']:<{22 if wide else 18}} {hardware}{fabric}{place}"


def notes(document: Document) -> list[str]:
    """The dates and sources of the figures."""
    days = sorted({offer["price"]["date"] for offer in document["ranked"]})
    lines = [f"on-demand prices of {' to '.join(dict.fromkeys((days[0], days[-1])))}; rates are dense, not sparse"]
    if (exchange := document["ask"]["exchange"]) is not None:
        lines.append(f"1 USD = {exchange['per_usd']:g} {exchange['currency']} on {exchange['date']}, as given")
    if not all(offer["measured"] for offer in document["ranked"]):
        percent = f"{100 * document['estimate']['share_of_dense_peak']:.0f} % of its peak"
        lines.append(
            f"~ no {document['ask']['precision']} measurement known: {percent}, the least of the measured GPUs"
        )
    return lines


def undeployable(document: Document) -> list[str]:
    """The clouds of the answer that can only be compared."""
    clouds = {offer["cloud"] for offer in [*document["ranked"], *document["rejected"]]}
    return sorted(clouds - {*DEPLOYED})


def by_reason(document: Document) -> list[tuple[str, str]]:
    """The rejected types by reason; a whole family by its name."""
    sizes = Counter(family(offer["type"]) for offer in [*document["ranked"], *document["rejected"]])
    names: dict[str, list[str]] = defaultdict(list)
    for rejected in document["rejected"]:
        names[rejected["reason"]].append(rejected["type"])
    return [(reason, ", ".join(shortened(types, sizes))) for reason, types in names.items()]


def shortened(types: list[str], sizes: Counter[str]) -> list[str]:
    here = Counter(family(name) for name in types)
    whole = {name for name, count in here.items() if count == sizes[name] > 1}
    return list(dict.fromkeys(f"{family(name)}.*" if family(name) in whole else name for name in types))


def family(type_name: str) -> str:
    """What comes before the size: "p5" of "p5.48xlarge"; a name without one is a family of its own."""
    return type_name.rpartition(".")[0] or type_name
