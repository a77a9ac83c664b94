"""The finished plan: everything that was decided, as frozen data. A cloud declares it and decides nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from infra.plan.chart import ChartPlan
from infra.plan.commands import CommandPlan, mounts
from infra.plan.disks import Scratch

PLAYBOOK = ("up, on every node", "ansible-playbook", "playbooks/gpu_node.yml")
HOURS_PER_MONTH = 730  # a year's 8760 hours in twelve equal months, as the clouds' own calculators count


@dataclass(frozen=True, kw_only=True)
class NodePlan:
    """One machine: its name, the group it belongs to, the address and TCP port of its SSH server."""

    name: str
    group: str
    address: str
    port: int


@dataclass(frozen=True, kw_only=True)
class LoadMetric:
    """The metric of GPU utilization, in percent: the cloud scales the group by its mean."""

    namespace: str
    name: str
    dimensions: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class GroupPlan:
    """Equal machines.

    count: how many are requested. nodes: those whose names and addresses are known beforehand: none of a fleet's;
    fewer than `count` on this computer only where the network has no room, which a rule refuses. gpu: the catalogue's
    name of the GPU, None without one. fabric: the network between the nodes' GPUs, "tcp" without a special one.
    scratch: the local disks of each node as one file system, None without any. mig: the slices that each GPU is cut
    into, none for whole GPUs.
    """

    name: str
    count: int
    gpu: str | None
    gpus_per_node: int
    fabric: str
    scratch: Scratch | None = None
    mig: tuple[str, ...] = ()
    nodes: tuple[NodePlan, ...]

    @property
    def fabric_devices(self) -> int:
        """How many RDMA devices a node must show; 0 where unknown beforehand."""
        return 0

    @property
    def load(self) -> LoadMetric | None:
        """None where the group is not scaled by it."""
        return None


@dataclass(frozen=True, kw_only=True)
class NetworkPlan:
    """The nodes' network. gateway: the address of the controlling computer on it, None where it stands outside."""

    cidr: str
    gateway: str | None


@dataclass(frozen=True, kw_only=True)
class StoragePlan:
    """Storage that every node shares, and the path where it is mounted.

    client: the program that mounts it, empty where nothing has to. options: of the mount. checksum: sha256 of the
    client's package, where the playbooks know none.
    """

    name: str
    kind: str
    mount: str
    client: str = ""
    options: tuple[str, ...] = ()
    checksum: str = ""


@dataclass(frozen=True, kw_only=True)
class SharedPlan(StoragePlan):
    """Storage that the nodes have at this path already: nothing is mounted there, so nothing is hidden."""


@dataclass(frozen=True, kw_only=True)
class AccessPlan:
    """Who may log in, beside the key pair that every cluster makes for itself."""

    public_keys: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CostItem:
    """One row of the bill: `quantity` things that together cost `hourly`, None where no price is known.

    source: where the price is from, or why there is none.
    """

    name: str
    quantity: int
    hourly: float | None
    source: str


class Surrounding(CostItem):
    """Resources beside the nodes: disks, gateways, addresses, shown as one sum."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What the cluster is expected to cost an hour, and at most (spot prices move, groups grow), by its priced items.

    per_gpu_hour, per_pflop_hour: of the GPU nodes alone, the latter by what their GPUs were measured to do in bf16;
    None without GPUs, or where a figure is missing.
    """

    currency: str
    hourly: float
    hourly_max: float
    per_gpu_hour: float | None
    per_pflop_hour: float | None
    items: tuple[CostItem, ...]

    @property
    def shares(self) -> dict[str, float]:
        """What makes up an hour: each group, and together what stands beside them."""
        alone = {item.name: item.hourly for item in self.items if item.hourly and not isinstance(item, Surrounding)}
        rest = sum(item.hourly or 0.0 for item in self.items if isinstance(item, Surrounding))
        return {**alone, "the rest": rest} if rest else alone

    @property
    def monthly(self) -> float:
        """What a month of expected hours costs."""
        return self.hourly * HOURS_PER_MONTH

    @property
    def monthly_max(self) -> float:
        """What a month of the dearest hours costs."""
        return self.hourly_max * HOURS_PER_MONTH

    @property
    def missing(self) -> tuple[str, ...]:
        """The items that the sums leave out, since no price of them is known."""
        return tuple(item.name for item in self.items if item.hourly is None)

    @property
    def unknown(self) -> str:
        """Why no price is known at all, so that the sums are meaningless; empty where one is."""
        known = len(self.missing) < len(self.items) or not self.items
        return "" if known else ", ".join(dict.fromkeys(item.source for item in self.items))

    def to_json(self) -> dict[str, Any]:
        sums = {"monthly": self.monthly, "monthly_max": self.monthly_max, "missing": self.missing}
        return _plain({**asdict(self), **sums})


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a preflight rule has to say about the decision; `path` is the key of the stack file that it is about."""

    level: Literal["error", "warning", "info"]
    rule: str
    path: str
    message: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The finished plan: returned by a cloud's `decide`, read by everything that declares, draws, prices or reports."""

    stack: str
    cloud: str
    region: str | None
    network: NetworkPlan
    access: AccessPlan
    groups: tuple[GroupPlan, ...]
    storage: tuple[StoragePlan, ...]
    cost: Cost
    findings: tuple[Finding, ...]

    @property
    def charts(self) -> tuple[ChartPlan, ...]:
        """The Helm charts that the stack installs for its tenant of Kubernetes."""
        return ()

    @property
    def commands(self) -> tuple[CommandPlan, ...]:
        """What runs on this computer and on nodes as root; boot scripts stand in the rendered resources alone."""
        named = ((storage.name, storage.mount, storage.client, storage.options) for storage in self.storage)
        return tuple(command for storage in named for command in mounts(*storage))

    @property
    def remains(self) -> tuple[str, ...]:
        """What `down` leaves behind by design."""
        return ()

    @property
    def nodes(self) -> tuple[NodePlan, ...]:
        """Every node of every group, in the order of the stack file."""
        return tuple(node for group in self.groups for node in group.nodes)

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that forbid declaring this plan."""
        return tuple(finding for finding in self.findings if finding.level == "error")

    def to_json(self) -> dict[str, Any]:
        return _plain(asdict(self))


def _plain(value: Any) -> Any:
    """Tuples as lists: a plan that was written as JSON and read back is equal to what was written."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
