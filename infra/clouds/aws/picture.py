"""A cluster on AWS as a scene: the VPC's zones side by side, its kinds of subnet one below the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from infra.clouds.aws.plan import summary
from infra.clouds.aws.plan.capacity import CapacityBlock
from infra.clouds.aws.plan.model import AwsEksPlan, AwsGroupPlan, AwsPlan, LustrePlan
from infra.graph.picture.scene import Card, Machines, Note, Scene, card, of_zones
from infra.plan.cloud_model import BucketPlan

INTERFACES = {"interface": "IP interface", "efa-only": "EFA only", "efa": "EFA with IP"}


def scene(plan: AwsPlan) -> Scene:
    return of_zones(plan, plan.network.subnets, partial(_cards, plan), _entrances(plan), _outside(plan))


def _cards(plan: AwsPlan, zone_of: Mapping[str, int]) -> Iterator[Card]:
    for group in plan.groups:
        if zones := [zone_of[name] for name in group.subnets if name in zone_of]:
            yield _group(plan, group, (min(zones), max(zones)))
    for name in plan.network.nat:
        if name in zone_of:
            yield Card(
                title="NAT gateway", lines=("the way out of the private nodes",), zones=(zone_of[name], zone_of[name])
            )
    for item in plan.storage:
        if isinstance(item, LustrePlan) and item.subnet in zone_of:
            zone, lines = zone_of[item.subnet], summary.file_system(item).split(" · ")
            yield Card(title=f"FSx for {lines[0]}", lines=tuple(lines[1:]), zones=(zone, zone))
    private = [each for each in plan.network.endpoints if each.kind == "interface" and each.subnets[0] in zone_of]
    if private:
        zones = [zone_of[name] for name in private[0].subnets]
        names = ", ".join(each.name for each in private)
        yield Card(title=f"{len(private)} interface endpoints", lines=(names,), zones=(min(zones), max(zones)))


def _group(plan: AwsPlan, group: AwsGroupPlan, zones: tuple[int, int]) -> Card:
    place = "" if group.role == "head" else summary.place(group)
    disks = f"{summary.disks(group.scratch)} → {group.scratch.mount}" if group.scratch else ""
    lines = [
        summary.hardware(group),
        " · ".join(filter(None, [summary.market(group.market), place])),
        summary.fabric(group).removeprefix(", "),
        " · ".join(filter(None, [f"root {group.root.size_gib} GiB", disks])),
    ]
    machines = Machines(
        least=group.count,
        most=group.most,
        gpus=group.gpus_per_node,
        cards=tuple(interface.interface_type for interface in group.interfaces),
        kinds=INTERFACES,
    )
    whole = card(plan, group, [line for line in lines if line])
    paid = {"right": "paid up front"} if isinstance(group.market, CapacityBlock) else {}
    return replace(whole, size=f"{summary.count(group)} × {group.type}", machines=machines, zones=zones, **paid)


def _entrances(plan: AwsPlan) -> Iterator[Note]:
    access = plan.access
    if access.ssh_from:
        first = next(group.name for group in plan.groups if group.public_address)
        yield Note(title="people", lines=("SSH, port 22, from", *access.ssh_from), to=access.head or first)
    if access.session_manager:
        yield Note(title="people", lines=("Session Manager,", "no open port"))


def _outside(plan: AwsPlan) -> Iterator[Note]:
    if isinstance(plan, AwsEksPlan):
        parts = summary.kubernetes(plan.eks).split(" · ")
        yield Note(title=parts[0], lines=("control plane", *parts[1:]))
    for item in plan.storage:
        if isinstance(item, BucketPlan):
            yield Note(title=f"S3 bucket {item.name}", lines=(f"→ {item.mount}", "by gateway endpoint"))
    yield Note(title="S3 bucket of the stack", lines=("playbooks, training package",))
    names = ", ".join(event.name for event in plan.interruption.events)
    yield Note(title="interruption queue", lines=(f"SQS: {names}",))
    yield Note(title="KMS key", lines=("disks, buckets, queue, flow log",))
    if plan.budget:
        yield Note(
            title="budget",
            lines=(
                f"{plan.budget.monthly_usd:,.0f} USD a month",
                f"told at {', '.join(map(str, plan.budget.thresholds_percent))} %",
                *plan.budget.emails,
            ),
        )
