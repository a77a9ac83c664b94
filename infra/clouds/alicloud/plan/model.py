"""The finished plan of a cluster on Alibaba Cloud: all that `clouds/alicloud` declares, decided.

Names are the stack file's own, and what one part says of another says it by name. What only the cloud knows (ids) is no
part of a plan. Units stand in the fields' names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from infra.clouds.alicloud.plan.capacity import Capacity, Elastic, FixedSize, Machines, ManagedPool, Market, Mix
from infra.clouds.alicloud.plan.eri import Eri
from infra.clouds.kubernetes.plan.model import TenantPlan
from infra.plan.chart import ChartPlan
from infra.plan.cloud_model import AlarmPlan, BucketPlan, CloudGroupPlan, CloudKeyPlan, CloudPlan
from infra.plan.commands import SSH_CALLERS, CommandPlan, here
from infra.plan.firewall import FirewallRule
from infra.plan.iam import Statement
from infra.plan.model import AccessPlan, NetworkPlan
from infra.plan.subnets import Kind


@dataclass(frozen=True, kw_only=True)
class VSwitchPlan:
    """A vSwitch. name: `<kind>-<zone>`. All share the VPC's one route table: public or not is a matter of addresses.

    snat: its machines go out through the NAT gateway.
    """

    name: str
    zone: str
    kind: Kind
    cidr: str
    snat: bool


@dataclass(frozen=True, kw_only=True)
class FlowLogPlan:
    """The VPC's flow log, into a store of the Log Service."""

    traffic: Literal["All", "Allow", "Drop"]
    aggregation_minutes: Literal[1, 5, 10]
    retention_days: int


@dataclass(frozen=True, kw_only=True)
class AlicloudNetworkPlan(NetworkPlan):
    """The VPC. vswitches: only those that something stands in. nat: the vSwitch of the one NAT gateway, None without.

    security_groups: enterprise ones, in the order of declaration. rules: all their rules, by addresses: an enterprise
    group can name no other group.
    """

    vswitches: tuple[VSwitchPlan, ...]
    nat: str | None
    security_groups: tuple[str, ...]
    rules: tuple[FirewallRule, ...]
    flow_log: FlowLogPlan


@dataclass(frozen=True, kw_only=True)
class AlicloudAccessPlan(AccessPlan):
    """How people come in. key_pair: the public key of the ECS key pair. ssh_from: the networks that SSH is open to.

    user: the login name of the machine image. head: the group whose machine people log in to.
    """

    ssh_from: tuple[str, ...]
    user: str
    key_pair: str | None
    head: str | None


@dataclass(frozen=True, kw_only=True)
class ImagePlan:
    """The machine image. name_regex: of the public one whose newest is taken. recorded: the stack file's, by id."""

    name_regex: str
    recorded: str | None


@dataclass(frozen=True, kw_only=True)
class DiskPlan:
    """The system disk: an ESSD under the stack's key, gone with the node. level: its performance level."""

    size_gib: int
    level: str
    category: Literal["cloud_essd"] = "cloud_essd"
    encrypted: Literal[True] = True


@dataclass(frozen=True, kw_only=True)
class DeploymentPlan:
    """The deployment set. strategy: None means none; reason: why so."""

    strategy: Literal["LowLatency", "Availability"] | None
    reason: str


@dataclass(frozen=True, kw_only=True)
class AlicloudGroupPlan(CloudGroupPlan):
    """Equal instances. eris: the interfaces in RDMA mode, primary first; hpc: they join a Super Computing Cluster.

    vswitches: one a zone, all of one kind. A public address is an EIP of its own.
    """

    market: Market
    capacity: Capacity
    vswitches: tuple[str, ...]
    eris: tuple[Eri, ...]
    hpc: bool
    deployment: DeploymentPlan
    image: ImagePlan
    root: DiskPlan

    @property
    def elastic(self) -> bool:
        return isinstance(self.capacity, Elastic)

    @property
    def most(self) -> int:
        return self.capacity.most if isinstance(self.capacity, Elastic) else self.count

    @property
    def image_has_driver(self) -> bool:
        return isinstance(self.capacity, ManagedPool)

    @property
    def fabric_devices(self) -> int:
        """An ERI is one RDMA device; how many a Super Computing Cluster has is undocumented."""
        return len(self.eris)

    @property
    def joined(self) -> bool:
        """Whether its nodes work together, and so speak freely with each other."""
        together = isinstance(self.capacity, Machines | FixedSize | Mix | ManagedPool) and self.count > 1
        return self.fabric != "tcp" or together


@dataclass(frozen=True, kw_only=True)
class KeyPlan(CloudKeyPlan):
    """A default key: it rotates once a year, and takes no policy of its own."""


@dataclass(frozen=True, kw_only=True)
class EventPlan:
    """A rule of CloudMonitor over system events. names: of the events of `product`."""

    name: str
    product: str
    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class InterruptionPlan:
    """What ECS announces about nodes, into one encrypted queue."""

    events: tuple[EventPlan, ...]
    retention_seconds: int


@dataclass(frozen=True, kw_only=True)
class BudgetPlan(AlarmPlan):
    """Mail addresses that CloudMonitor notifies of every node that starts or ends.

    Neither CloudMonitor nor the provider knows a bill: what a node costs, and what the month may, stands in the plan.
    """

    monthly_cny: float
    event: EventPlan


@dataclass(frozen=True, kw_only=True)
class AddonPlan:
    """An add-on of ACK. born: it comes with the control plane, which takes its network from nowhere else; the others
    are put in once nodes without GPUs are there to run them."""

    name: str
    born: bool
    settings: Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class AckPlan:
    """A managed cluster of ACK. spec: ack.pro.small, which gang scheduling and GPU topology need.

    service_cidr: of its services, outside the VPC. Its API has no address of the internet. tenant: the tenant of the
    cluster, None without one. tenant_permissions: of the RAM role that the tenant's pods take on, empty where they need
    none.
    """

    name: str
    version: str
    spec: Literal["ack.standard", "ack.pro.small"]
    service_cidr: str
    vswitches: tuple[str, ...]
    addons: tuple[AddonPlan, ...]
    tenant: TenantPlan | None
    tenant_permissions: tuple[Statement, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CopyPlan:
    """A copy of another stack's bucket into one of this stack's.

    usd_per_month: what the other cloud takes for the traffic; this one takes nothing for what comes in.
    """

    stack: str
    storage: str
    to: str
    prefix: str
    gib_per_month: int
    usd_per_month: float

    @property
    def command(self) -> CommandPlan:
        below = f"/{self.prefix}" if self.prefix else ""
        source, target = f"from:${{{self.stack}.{self.storage}}}{below}", f"to:${{{self.to}}}{below}"
        return here("copy", "rclone", "copy", source, target)


@dataclass(frozen=True, kw_only=True)
class AlicloudPlan(CloudPlan):
    """A cluster in one region of Alibaba Cloud. NAT stands in the first zone.

    permissions: of the nodes' role, None where ACK gives them one. storage_role_permissions: of the role that the
    sessions of jobs and tenants are narrowed from, none where there is no bucket, or with ACK. ack: None for plain
    machines: see AlicloudHostsPlan and AlicloudAckPlan.
    """

    network: AlicloudNetworkPlan
    access: AlicloudAccessPlan
    groups: tuple[AlicloudGroupPlan, ...]
    storage: tuple[BucketPlan, ...]
    copies: tuple[CopyPlan, ...]
    key: KeyPlan
    permissions: tuple[Statement, ...] | None
    storage_role_permissions: tuple[Statement, ...]
    ack: AckPlan | None
    interruption: InterruptionPlan
    budget: BudgetPlan | None

    @property
    def commands(self) -> tuple[CommandPlan, ...]:
        return (*(copy.command for copy in self.copies), *super().commands)


@dataclass(frozen=True, kw_only=True)
class AlicloudHostsPlan(AlicloudPlan):
    """Plain machines, which playbooks make into nodes."""

    ack: None = None

    @property
    def commands(self) -> tuple[CommandPlan, ...]:
        proxy = ("ssh", "-W", "%h:%p", f"{self.access.user}@${{{self.access.head}}}")
        jump = (here(f"{SSH_CALLERS}, to nodes", *proxy),) if self.access.head else ()
        return (*jump, *super().commands)


@dataclass(frozen=True, kw_only=True)
class AlicloudAckPlan(AlicloudPlan):
    """A cluster of Kubernetes, whose nodes ACK makes."""

    ack: AckPlan

    @property
    def charts(self) -> tuple[ChartPlan, ...]:
        return self.ack.tenant.charts if self.ack.tenant else ()

    @property
    def commands(self) -> tuple[CommandPlan, ...]:
        credential = here("up, status, train", "ack-ram-tool", "credential-plugin", "get-credential")
        tenant = self.ack.tenant.commands if self.ack.tenant else ()
        return (credential, *tenant, *super().commands)
