"""What a picture shows, before anything has a place: a network of zones, bands of subnets, and what stands in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from infra.plan.cloud_model import CloudPlan
from infra.plan.model import GroupPlan, Plan
from infra.plan.summary import command_line, summary_of


@dataclass(frozen=True, kw_only=True)
class Machines:
    """Equal nodes. least: from the start; most: there can be. gpus: of one.

    cards: the kinds of its interfaces. kinds: what a cloud calls each of them.
    """

    least: int
    most: int
    gpus: int
    cards: tuple[str, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Card:
    """Something that stands in the network. zones: the places in `Scene.zones` that it spans, first and last."""

    title: str
    right: str = ""
    size: str = ""
    lines: tuple[str, ...] = ()
    machines: Machines | None = None
    zones: tuple[int, int] = (0, 0)


@dataclass(frozen=True, kw_only=True)
class Band:
    """A kind of subnet over all zones. labels: of the subnet in each zone, by the zone's place."""

    kind: str
    labels: Mapping[int, str]
    cards: tuple[Card, ...]


@dataclass(frozen=True, kw_only=True)
class Note:
    """Something outside the network. to: the title of the card that its arrow leads to, "" for the network itself."""

    title: str
    lines: tuple[str, ...]
    to: str = ""


@dataclass(frozen=True, kw_only=True)
class Scene:
    """The whole picture. entrances: to the left of the network; outside: what it reaches, to its right."""

    title: str
    subtitle: str
    price: tuple[str, str]
    network: str
    zones: tuple[str, ...]
    bands: tuple[Band, ...]
    entrances: tuple[Note, ...] = ()
    outside: tuple[Note, ...] = ()
    footer: tuple[str, ...] = ()


class Subnet(Protocol):
    """A part of a VPC in one zone."""

    @property
    def name(self) -> str: ...
    @property
    def zone(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def cidr(self) -> str: ...


def plain(plan: Plan) -> Scene:
    """The scene of a cloud that has none of its own: what every plan says."""
    summary = summary_of(plan)
    cards = tuple(card(plan, group, summary.group(group).split(" · ")) for group in plan.groups)
    return Scene(
        title=plan.stack,
        subtitle=subtitle(plan),
        price=price(plan),
        network=f"network {plan.network.cidr}",
        zones=(summary.location,),
        bands=(Band(kind="private", labels={0: summary.network}, cards=cards),),
        entrances=(Note(title="people", lines=("SSH", summary.access)),),
        outside=tuple(
            Note(title=f"{storage.kind} {storage.name}", lines=(f"→ {storage.mount}",)) for storage in plan.storage
        ),
        footer=footer(plan),
    )


def of_zones(
    plan: CloudPlan,
    subnets: Sequence[Subnet],
    cards: Callable[[Mapping[str, int]], Iterable[Card]],
    entrances: Iterable[Note],
    outside: Iterable[Note],
) -> Scene:
    """The scene of a VPC: its zones side by side, its kinds of subnet from the internet inwards, as far as there are
    such. cards: what stands in some subnets, given by their names with the places of their zones."""
    bands = []
    for kind in ("public", "private", "fabric"):
        if of_kind := [subnet for subnet in subnets if subnet.kind == kind]:
            place = {subnet.name: plan.zones.index(subnet.zone) for subnet in of_kind}
            labels = {place[subnet.name]: f"{kind} {subnet.cidr}" for subnet in of_kind}
            bands.append(Band(kind=kind, labels=labels, cards=tuple(cards(place))))
    return Scene(
        title=plan.stack,
        subtitle=subtitle(plan),
        price=price(plan),
        network=f"VPC {plan.network.cidr} · {plan.region}",
        zones=plan.zones,
        bands=tuple(bands),
        entrances=tuple(entrances),
        outside=tuple(outside),
        footer=footer(plan),
    )


def card(plan: Plan, group: GroupPlan, lines: Sequence[str]) -> Card:
    """A group of nodes with its price."""
    hourly = next((item.hourly for item in plan.cost.items if item.name == group.name), None)
    money = "no price" if hourly is None else f"{hourly:,.2f} {plan.cost.currency}/h"
    machines = Machines(least=group.count, most=group.count, gpus=group.gpus_per_node)
    return Card(title=group.name, right=money, size=summary_of(plan).size(group), lines=tuple(lines), machines=machines)


def subtitle(plan: Plan) -> str:
    """Everything of the headline but the stack's name."""
    return summary_of(plan).headline.removeprefix(f"{plan.stack} · ")


def price(plan: Plan) -> tuple[str, str]:
    """The hour in large, and what else there is to say of it."""
    cost = plan.cost
    if cost.unknown:
        return "no price", cost.unknown
    without = [group.name for group in plan.groups if group.name in cost.missing]
    parts = [
        f"without {', '.join(without)}" if without else "",
        f"at most {cost.hourly_max:,.2f}" if cost.hourly_max > cost.hourly else "",
        "" if cost.per_gpu_hour is None else f"{cost.per_gpu_hour:,.2f} {cost.currency}/GPU-h",
        f"{cost.monthly:,.0f} {cost.currency}/month" if cost.hourly else "",
    ]
    return f"{cost.hourly:,.2f} {cost.currency}/h", " · ".join(filter(None, parts))


def footer(plan: Plan) -> tuple[str, ...]:
    """What the price is made of, what it leaves out, and what the stack runs on this computer and as root."""
    cost = plan.cost
    priced = [f"{name} {usd:,.2f}" for name, usd in cost.shares.items()]
    sums = f"price: {' + '.join(priced)} = {cost.hourly:,.2f} {cost.currency}/h" if len(priced) > 1 else ""
    left_out = f"not in the price: {' · '.join(cost.missing)}" if cost.missing else ""
    runs = (f"runs on {command.where}: {command_line(command)}" for command in plan.commands)
    return tuple(filter(None, [sums, left_out, *runs]))
