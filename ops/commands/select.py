"""`gpufleet select`: which instance types fit a job, cheapest work first. Tables only: no network, no credentials."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date
from typing import Annotated, Any

import typer

from infra import catalog
from infra.catalog import FabricNeed, Precision, UnknownRegion, selection
from infra.catalog.selection import Ask, AskError, Choice, Exchange, Offer
from ops.console.terminal import Json, Rate, show
from ops.errors import CommandError

Document = dict[str, Any]
SHOWN = 12  # rows that a person reads; --json has them all
DEPLOYED = ("aws", "alicloud")  # the clouds that `up` knows; the tables know more


def command(
    gpus: Annotated[int, typer.Option(min=1, help="how many GPUs", show_default=False)],
    region: Annotated[
        str | None, typer.Option(help="where, e.g. us-east-1; without it each type where it costs least")
    ] = None,
    gpu_memory: Annotated[float, typer.Option(metavar="GIB", help="usable memory of each GPU, at least")] = 0.0,
    precision: Annotated[Precision, typer.Option(help="format of the matrix products")] = "bf16",
    fabric: Annotated[FabricNeed, typer.Option(help="a fast network between nodes")] = "preferred",
    budget: Annotated[float | None, typer.Option(metavar="USD", help="at most, per hour, all nodes")] = None,
    clouds: Annotated[
        str, typer.Option(metavar="NAME,…", help="of aws, alicloud, azure, tencent: in one table")
    ] = "aws",
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
    """The document of `--json`; see `Ask` for what is asked. rate: `CNY=7.10@2026-11-20`, units for a dollar on a day.

    Raises CommandError, code 2, for an ask that makes no sense.
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
    except (AskError, UnknownRegion) as mistake:
        raise CommandError(str(mistake), code=2) from None


def exchange(rate: str | None) -> Exchange | None:
    """Raises AskError."""
    if rate is None:
        return None
    found = re.fullmatch(r"([A-Z]{3})=(\d+(?:\.\d+)?)@(\d{4}-\d{2}-\d{2})", rate)
    if found is None:
        raise AskError(f"rate: '{rate}' is no rate with its day, such as CNY=7.10@2026-11-20")
    currency, amount, day = found.groups()
    try:
        return Exchange(currency=currency, per_usd=float(amount), date=date.fromisoformat(day))
    except ValueError:
        raise AskError(f"rate: '{day}' is no day") from None


def document(ask: Ask, chosen: Choice, least_measured_share: float) -> Document:
    return {
        "ask": asdict(ask) | {"clouds": list(ask.clouds), "exchange": _told(ask.exchange)},
        "ranked": [_ranked(offer) for offer in chosen.ranked],
        "rejected": [asdict(rejected) for rejected in chosen.rejected],
        "estimate": {"share_of_dense_peak": round(least_measured_share, 4)},
    }


def _told(exchange: Exchange | None) -> Document | None:
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


def text(told: Document) -> str:
    """The ranking as a table, what its figures rest on, and the rejected types by reason."""
    ask, ranked = told["ask"], told["ranked"]
    lines = [headline(ask), ""]
    if ranked:
        wide = ask["region"] is None
        lines += ["  USD/PFLOP-h     USD/h  USD/GPU-h", *(row(offer, wide) for offer in ranked[:SHOWN])]
        lines += [f"  … {hidden} more with --json"] if (hidden := len(ranked) - SHOWN) > 0 else []
        lines += ["", *(f"  {note}" for note in notes(told))]
    else:
        lines += ["  no type fits"]
    if told["rejected"]:
        lines += ["", "  not fit:", *(f"    {reason}: {names}" for reason, names in by_reason(told))]
    if others := undeployable(told):
        lines += ["", f"  not deployable yet: {', '.join(others)} (rows to compare with; no stack file names them)"]
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


def notes(told: Document) -> list[str]:
    """What the figures rest on: a ranking is worth as much as its sources."""
    days = sorted({offer["price"]["date"] for offer in told["ranked"]})
    lines = [f"on-demand prices of {' to '.join(dict.fromkeys((days[0], days[-1])))}; rates are dense, not sparse"]
    if (exchange := told["ask"]["exchange"]) is not None:
        lines.append(f"1 USD = {exchange['per_usd']:g} {exchange['currency']} on {exchange['date']}, as given")
    if not all(offer["measured"] for offer in told["ranked"]):
        percent = f"{100 * told['estimate']['share_of_dense_peak']:.0f} % of its peak"
        lines.append(f"~ no {told['ask']['precision']} measurement known: {percent}, the least of the measured GPUs")
    return lines


def undeployable(told: Document) -> list[str]:
    """The clouds of the answer that can be compared, and nothing more."""
    clouds = {each["cloud"] for each in [*told["ranked"], *told["rejected"]]}
    return sorted(clouds - {*DEPLOYED})


def by_reason(told: Document) -> list[tuple[str, str]]:
    """The rejected types, together where they share a reason; a family by its name where all its sizes do."""
    sizes = Counter(family(each["type"]) for each in [*told["ranked"], *told["rejected"]])
    names: dict[str, list[str]] = defaultdict(list)
    for each in told["rejected"]:
        names[each["reason"]].append(each["type"])
    return [(reason, ", ".join(shortened(types, sizes))) for reason, types in names.items()]


def shortened(types: list[str], sizes: Counter[str]) -> list[str]:
    here = Counter(family(name) for name in types)
    whole = {name for name, count in here.items() if count == sizes[name] > 1}
    return list(dict.fromkeys(f"{family(name)}.*" if family(name) in whole else name for name in types))


def family(type_name: str) -> str:
    """What comes before the size: "p5" of "p5.48xlarge"; a name without one is a family of its own."""
    return type_name.rpartition(".")[0] or type_name
