"""The plan of a cluster on AWS as text for people: one line a concern."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from infra.clouds.aws.plan.capacity import CapacityBlock, Elastic, Market, OnDemand, Reservation, Spot
from infra.clouds.aws.plan.eks_model import EksPlan
from infra.clouds.aws.plan.model import AwsAccessPlan, AwsEksPlan, AwsGroupPlan, AwsNetworkPlan, AwsPlan, LustrePlan
from infra.plan.disks import Scratch
from infra.plan.model import StoragePlan
from infra.plan.summary import CloudSummary


def size(group: AwsGroupPlan) -> str:
    """How many of which type, with what GPUs: `4 × p4d.24xlarge (32 × A100-SXM4-40GB, EFA 400 Gbit/s per node)`."""
    if group.gpu is None:
        return f"{count(group)} × {group.type} ({group.name})"
    elastic = group.most > group.count
    gpus = f"{group.gpus_per_node if elastic else group.count * group.gpus_per_node} × {group.gpu}"
    return f"{count(group)} × {group.type} ({gpus}{' each' if elastic else ''}{fabric(group)})"


def count(group: AwsGroupPlan) -> str:
    return f"{group.count} to {group.most}" if group.most > group.count else str(group.count)


def fabric(group: AwsGroupPlan) -> str:
    """Empty without EFA."""
    return f", EFA {group.fabric_gbps:,g} Gbit/s per node" if group.fabric == "efa" and group.fabric_gbps else ""


def network(plan: AwsNetworkPlan) -> str:
    """Where the nodes stand, and their ways out."""
    zones = len({subnet.zone for subnet in plan.subnets})
    ranges: dict[str, list[str]] = defaultdict(list)
    for subnet in plan.subnets:
        ranges[subnet.kind].append(subnet.cidr)
    endpoints = Counter(endpoint.kind for endpoint in plan.endpoints)
    out = f"{number(len(plan.nat), 'NAT gateway')}" if plan.nat else "no NAT"
    own = f" · {number(endpoints['interface'], 'interface endpoint')}" if endpoints["interface"] else ""
    kinds = [f"{kind} {', '.join(ranges[kind])}" for kind in ("fabric", "private", "public") if kind in ranges]
    return " · ".join([plan.cidr, number(zones, "zone"), *kinds, out]) + own + " · S3 by gateway endpoint"


def number(many: int, what: str) -> str:
    return f"{many} {what}" + ("" if many == 1 else "s")


def node_group(plan: AwsGroupPlan) -> str:
    """A group's hardware, how it is bought and where it stands."""
    return " · ".join([f"{count(plan)} × {plan.type}", hardware(plan), market(plan.market), place(plan), cards(plan)])


def hardware(plan: AwsGroupPlan) -> str:
    """The GPUs of a node, and what makes their number grow."""
    load = f" · at {plan.capacity.gpu_load_percent:g} % GPU load" if isinstance(plan.capacity, Elastic) else ""
    return (f"{plan.gpus_per_node} × {plan.gpu} each" if plan.gpu else "no GPU") + load


def place(plan: AwsGroupPlan) -> str:
    return f"{plan.placement.strategy} placement group" if plan.placement.strategy else "no placement group"


def market(bought: Market) -> str:
    match bought:
        case OnDemand():
            return "on demand"
        case Reservation():
            return f"reservation {bought.id}"
        case CapacityBlock():
            return f"capacity block {bought.id}" + (", to be bought" if bought.purchase else "")
        case Spot():
            cap = bought.max_price_usd_per_hour
            limit = "spot up to the on-demand price" if cap is None else f"spot up to {cap:.2f} USD/h each"
            return limit + (", else on demand" if bought.fallback else "")


def cards(plan: AwsGroupPlan) -> str:
    """`5 cards (1 interface, 4 efa-only)`; a plain one is not counted out."""
    kinds = Counter(interface.interface_type for interface in plan.interfaces)
    listed = ", ".join(f"{many} {kind}" for kind, many in kinds.items())
    return "1 interface" if listed == "1 interface" else f"{number(len(plan.interfaces), 'card')} ({listed})"


def kubernetes(plan: EksPlan) -> str:
    """The control plane, and from where it is reached."""
    api = f"API from {', '.join(plan.api_from)} and the VPC" if plan.api_from else "API from the VPC only"
    return f"EKS {plan.version} · {api} · {number(len(plan.addons), 'add-on')}"


def file_system(plan: LustrePlan) -> str:
    speed = f"{plan.size_gib * plan.mib_per_second_per_tib / 1024:,.0f} MiB/s"
    over = f" · shows bucket {plan.bucket}" if plan.bucket else ""
    return f"Lustre {plan.name} → {plan.mount} · {plan.size_gib:,} GiB, {speed}{', EFA' if plan.efa else ''}{over}"


def scratch(plan: AwsPlan) -> Iterator[str]:
    """The groups whose nodes have local disks."""
    for group in plan.groups:
        if group.scratch:
            yield f"{group.name}: {disks(group.scratch)} → {group.scratch.mount}"


def disks(plan: Scratch) -> str:
    raid = "" if plan.raid_level is None else f" as RAID {plan.raid_level}"
    return f"{plan.disks} × {plan.size_gb // plan.disks:,} GB instance store{raid}"


def access(plan: AwsAccessPlan) -> str:
    """Who comes in, by which door."""
    door = f" to {plan.head} only" if plan.head else " to every node"
    ways = [
        f"22 from {', '.join(plan.ssh_from)}{door}, as {plan.user}" if plan.ssh_from else "no port is open",
        "Session Manager" if plan.session_manager else "",
        f"nodes through {plan.head}" if plan.head else "",
    ]
    return " · ".join(filter(None, ways))


class AwsSummary(CloudSummary[AwsPlan, AwsGroupPlan]):
    """The rows of a plan on AWS."""

    @property
    def below_the_network(self) -> tuple[tuple[str, str], ...]:
        return (("kubernetes", kubernetes(self.plan.eks)),) if isinstance(self.plan, AwsEksPlan) else ()

    @property
    def above_the_access(self) -> tuple[tuple[str, str], ...]:
        return tuple(("scratch", line) for line in scratch(self.plan))

    @property
    def network(self) -> str:
        return network(self.plan.network)

    def size(self, group: AwsGroupPlan) -> str:
        return size(group)

    def group(self, group: AwsGroupPlan) -> str:
        return node_group(group)

    def storage(self, storage: StoragePlan) -> str:
        return file_system(storage) if isinstance(storage, LustrePlan) else super().storage(storage)

    @property
    def access(self) -> str:
        return access(self.plan.access)
