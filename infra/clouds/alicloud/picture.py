"""A cluster on Alibaba Cloud as a scene: the VPC's zones side by side, its kinds of vSwitch one below the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from infra.clouds.alicloud.plan import summary
from infra.clouds.alicloud.plan.model import AlicloudAckPlan, AlicloudGroupPlan, AlicloudPlan
from infra.graph.picture.scene import Card, Machines, Note, Scene, card, of_zones


def scene(plan: AlicloudPlan) -> Scene:
    return of_zones(plan, plan.network.vswitches, partial(_cards, plan), _entrances(plan), _outside(plan))


def _cards(plan: AlicloudPlan, zone_of: Mapping[str, int]) -> Iterator[Card]:
    for group in plan.groups:
        if zones := [zone_of[name] for name in group.vswitches if name in zone_of]:
            yield _group(plan, group, (min(zones), max(zones)))
    if (nat := plan.network.nat) and nat in zone_of:
        zone = zone_of[nat]
        yield Card(title="NAT gateway", lines=("the way out of all nodes",), zones=(zone, zone))


def _group(plan: AlicloudPlan, group: AlicloudGroupPlan, zones: tuple[int, int]) -> Card:
    place = "" if group.role == "head" else summary.place(group)
    lines = [
        summary.hardware(group),
        " · ".join(filter(None, [summary.market(group.market), place])),
        summary.fabric(group),
        f"system disk {group.root.size_gib} GiB",
    ]
    machines = Machines(
        least=group.count,
        most=group.most,
        gpus=group.gpus_per_node,
        cards=tuple("efa" for _ in group.eris) or ("interface",),  # an ERI carries IP traffic too, as that kind does
        kinds={"interface": "IP interface", "efa": "eRDMA with IP"},
    )
    whole = card(plan, group, [line for line in lines if line])
    return replace(whole, size=f"{summary.count(group)} × {group.type}", machines=machines, zones=zones)


def _entrances(plan: AlicloudPlan) -> Iterator[Note]:
    if plan.access.ssh_from and plan.access.head:
        yield Note(title="people", lines=("SSH, port 22, from", *plan.access.ssh_from), to=plan.access.head)


def _outside(plan: AlicloudPlan) -> Iterator[Note]:
    if isinstance(plan, AlicloudAckPlan):
        parts = summary.kubernetes(plan.ack).split(" · ")
        yield Note(title=parts[0], lines=("control plane", *parts[1:]))
    for item in plan.storage:
        yield Note(title=f"OSS bucket {item.name}", lines=(f"→ {item.mount}", "by its internal name"))
    if plan.bundle:
        yield Note(title="OSS bucket of the stack", lines=("playbooks, training package",))
    names = ", ".join(event.name for event in plan.interruption.events)
    yield Note(title="interruption queue", lines=(f"CloudMonitor: {names}",))
    yield Note(title="KMS key", lines=("disks, buckets",))
    if plan.budget:
        budget = (f"{plan.budget.monthly_cny:,.0f} CNY a month", "told of every node", *plan.budget.emails)
        yield Note(title="budget", lines=budget)
