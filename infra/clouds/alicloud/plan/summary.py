"""The plan of a cluster on Alibaba Cloud as text for people: one line a concern."""

from __future__ import annotations

from collections import defaultdict

from infra.clouds.alicloud.plan.capacity import Assurance, Elastic, Machines, Market, Mix, OnDemand, PrivatePool, Spot
from infra.clouds.alicloud.plan.model import (
    AckPlan,
    AlicloudAccessPlan,
    AlicloudAckPlan,
    AlicloudGroupPlan,
    AlicloudNetworkPlan,
    AlicloudPlan,
    CopyPlan,
)
from infra.plan.summary import CloudSummary

FABRICS = {"erdma": "eRDMA", "roce": "RoCE"}


def size(group: AlicloudGroupPlan) -> str:
    """How many of which type, with what GPUs."""
    if group.gpu is None:
        return f"{count(group)} × {group.type} ({group.name})"
    elastic = group.most > group.count
    gpus = f"{group.gpus_per_node if elastic else group.count * group.gpus_per_node} × {group.gpu}"
    speed = f", {fabric(group)}" if fabric(group) else ""
    return f"{count(group)} × {group.type} ({gpus}{' each' if elastic else ''}{speed})"


def count(group: AlicloudGroupPlan) -> str:
    return f"{group.count} to {group.most}" if group.most > group.count else str(group.count)


def fabric(group: AlicloudGroupPlan) -> str:
    """Empty without one."""
    if group.fabric == "tcp" or not group.fabric_gbps:
        return ""
    return f"{FABRICS[group.fabric]} {group.fabric_gbps:,g} Gbit/s per node"


def network(plan: AlicloudNetworkPlan) -> str:
    """Where the nodes stand, and their way out."""
    zones = len({each.zone for each in plan.vswitches})
    ranges: dict[str, list[str]] = defaultdict(list)
    for each in plan.vswitches:
        ranges[each.kind].append(each.cidr)
    kinds = [f"{kind} {', '.join(ranges[kind])}" for kind in ("fabric", "private", "public") if kind in ranges]
    out = "1 NAT gateway" if plan.nat else "no NAT"
    return " · ".join([plan.cidr, f"{zones} zone{'s' if zones > 1 else ''}", *kinds, out, "OSS by its internal name"])


def node_group(plan: AlicloudGroupPlan) -> str:
    """A group's hardware, how it is bought and where it stands."""
    parts = [f"{count(plan)} × {plan.type}", hardware(plan), market(plan.market), place(plan), cards(plan)]
    if isinstance(plan.capacity, Machines):
        parts.append("declared one by one")
    if isinstance(plan.capacity, Mix):
        parts.append(f"or {', '.join(plan.capacity.types[1:])}")
    return " · ".join(parts)


def hardware(plan: AlicloudGroupPlan) -> str:
    """The GPUs of a node, and what makes their number grow."""
    load = f" · at {plan.capacity.gpu_load_percent:g} % GPU load" if isinstance(plan.capacity, Elastic) else ""
    return (f"{plan.gpus_per_node} × {plan.gpu} each" if plan.gpu else "no GPU") + load


def place(plan: AlicloudGroupPlan) -> str:
    if plan.hpc:
        return "one Super Computing Cluster"
    return f"{plan.deployment.strategy} deployment set" if plan.deployment.strategy else "no deployment set"


def market(bought: Market) -> str:
    match bought:
        case OnDemand():
            return "on demand"
        case PrivatePool():
            return f"private pool {bought.id}"
        case Assurance():
            return f"elasticity assurance of {bought.months} months, to be bought"
        case Spot():
            cap = bought.max_price_cny_per_hour
            limit = "spot up to the on-demand price" if cap is None else f"spot up to {cap:.2f} CNY/h each"
            hour = ", one hour protected" if bought.protected_hours else ""
            return limit + hour + (", else on demand" if bought.fallback else "")


def cards(plan: AlicloudGroupPlan) -> str:
    """`2 eRDMA interfaces on 2 cards`."""
    if not plan.eris:
        return "1 interface"
    many = len(plan.eris)
    return f"{many} eRDMA interface{'s' if many > 1 else ''} on {many} card{'s' if many > 1 else ''}"


def kubernetes(plan: AckPlan) -> str:
    """The control plane, and from where it is reached."""
    return f"ACK {plan.version}, {plan.spec} · API from the VPC only · {len(plan.addons)} add-ons"


def access(plan: AlicloudAccessPlan) -> str:
    """Who comes in, by which door."""
    if not plan.ssh_from or plan.head is None:
        return "no port is open"
    return f"22 from {', '.join(plan.ssh_from)} to {plan.head} only, as {plan.user} · nodes through {plan.head}"


def copy(plan: CopyPlan) -> str:
    """What is copied, and what the other cloud takes for it."""
    what = f"{plan.prefix} of {plan.storage}" if plan.prefix else plan.storage
    volume, price = f"{plan.gib_per_month:,} GiB", f"{plan.usd_per_month:,.2f} USD"
    return f"{what} of {plan.stack} → {plan.to} · {volume} a month leave AWS for {price} · by `gpufleet copy`"


class AlicloudSummary(CloudSummary[AlicloudPlan, AlicloudGroupPlan]):
    """The rows of a plan on Alibaba Cloud."""

    @property
    def below_the_network(self) -> tuple[tuple[str, str], ...]:
        return (("kubernetes", kubernetes(self.plan.ack)),) if isinstance(self.plan, AlicloudAckPlan) else ()

    @property
    def above_the_access(self) -> tuple[tuple[str, str], ...]:
        return tuple(("copy", copy(item)) for item in self.plan.copies)

    @property
    def network(self) -> str:
        return network(self.plan.network)

    def size(self, group: AlicloudGroupPlan) -> str:
        return size(group)

    def group(self, group: AlicloudGroupPlan) -> str:
        return node_group(group)

    @property
    def access(self) -> str:
        return access(self.plan.access)
