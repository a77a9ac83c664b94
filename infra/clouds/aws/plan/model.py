"""The finished plan of a cluster on AWS: all that `clouds/aws` declares, decided.

Names are the stack file's own, and what one part says of another says it by name: a group names its subnets and its
security group. What only the cloud knows (ids, ARNs) is no part of a plan. Units stand in the fields' names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from infra.clouds.aws.plan.capacity import Capacity, CapacityBlock, Elastic, FixedSize, ManagedPool, Market
from infra.clouds.aws.plan.eks_model import EksPlan
from infra.clouds.aws.plan.nics import Interface
from infra.clouds.aws.plan.placement import Placement
from infra.clouds.aws.plan.volumes import Volume
from infra.plan.chart import ChartPlan
from infra.plan.cloud_model import AlarmPlan, BucketPlan, CloudGroupPlan, CloudKeyPlan, CloudPlan
from infra.plan.commands import SSH_CALLERS, CommandPlan, here
from infra.plan.firewall import FirewallRule
from infra.plan.iam import Statement
from infra.plan.model import AccessPlan, LoadMetric, NetworkPlan, StoragePlan
from infra.plan.subnets import Kind


@dataclass(frozen=True, kw_only=True)
class SubnetPlan:
    """A subnet. name: `<kind>-<zone>`. public: its route leads to the internet gateway. No public addresses by
    default (`map_public_ip_on_launch`): an interface that needs one requests it.

    nat: the name of the public subnet whose NAT gateway is its way out, None where it has another or none.
    """

    name: str
    zone: str
    kind: Kind
    cidr: str
    public: bool
    nat: str | None


@dataclass(frozen=True, kw_only=True)
class EndpointPlan:
    """A VPC endpoint. service: its whole name, such as com.amazonaws.us-east-1.s3.

    gateway: a row in the route tables of `subnets`, which costs nothing. interface: addresses in `subnets`, one a zone,
    private DNS on, behind the security group `security_group`.
    """

    name: str
    service: str
    kind: Literal["gateway", "interface"]
    subnets: tuple[str, ...]
    security_group: str | None


@dataclass(frozen=True, kw_only=True)
class FlowLogPlan:
    """The VPC's flow log, into a log group of CloudWatch Logs under the stack's key."""

    traffic: Literal["ACCEPT", "REJECT", "ALL"]
    aggregation_seconds: Literal[60, 600]
    retention_days: int


@dataclass(frozen=True, kw_only=True)
class AwsNetworkPlan(NetworkPlan):
    """The VPC. subnets: only those that something stands in. nat: the public subnets that hold a NAT gateway each.

    security_groups: every group, in the order of declaration. rules: all their rules; a group that no rule names is
    closed both ways.
    """

    subnets: tuple[SubnetPlan, ...]
    nat: tuple[str, ...]
    endpoints: tuple[EndpointPlan, ...]
    security_groups: tuple[str, ...]
    rules: tuple[FirewallRule, ...]
    flow_log: FlowLogPlan


@dataclass(frozen=True, kw_only=True)
class AwsAccessPlan(AccessPlan):
    """How people come in. key_pair: the public key of the EC2 key pair, None where Session Manager is the only way.

    ssh_from: the networks that SSH is open to, none where no port is. user: the login name of the machine image.
    session_manager: the nodes' role lets them be reached through it. head: the group whose machine people log in to,
    and nodes are reached through; None: each node by itself.
    """

    ssh_from: tuple[str, ...]
    user: str
    key_pair: str | None
    session_manager: bool
    head: str | None


@dataclass(frozen=True, kw_only=True)
class ImagePlan:
    """The machine image. parameter: the public parameter of Systems Manager that names the newest one.

    recorded: its value in the stack file's `images`; None: `up` looks it up.
    """

    parameter: str
    architecture: Literal["x86_64", "arm64"]
    recorded: str | None


@dataclass(frozen=True, kw_only=True)
class AwsGroupPlan(CloudGroupPlan):
    """Equal instances: one launch template and what is started from it.

    count: nodes at the start; `nodes` is empty, since the members of a fleet are found by their tags. subnets: one a
    zone, all of one kind. interfaces: first card first; a public address is of the only one. metadata_hop_limit: IMDSv2
    is always required; 2, so that containers reach it.
    """

    market: Market
    capacity: Capacity
    subnets: tuple[str, ...]
    interfaces: tuple[Interface, ...]
    placement: Placement
    image: ImagePlan
    root: Volume
    metadata_hop_limit: int

    @property
    def fabric_devices(self) -> int:
        """Every EFA interface is one."""
        return sum(card.interface_type != "interface" for card in self.interfaces)

    @property
    def load(self) -> LoadMetric | None:
        return self.capacity.load if isinstance(self.capacity, Elastic) else None

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
    def paid_up_front(self) -> bool:
        return isinstance(self.market, CapacityBlock)

    @property
    def joined(self) -> bool:
        """Whether its nodes work together, and so speak freely with each other."""
        return self.fabric == "efa" or (isinstance(self.capacity, FixedSize) and self.count > 1)


@dataclass(frozen=True, kw_only=True)
class LustrePlan(StoragePlan):
    """A file system of FSx for Lustre, PERSISTENT_2 on SSD, encrypted with the stack's key.

    subnet: the one zone that it is in. bucket: the name of the bucket that it shows below `/`, None without one. efa:
    chosen at creation for good; brings `metadata_mode`. final_backup: of `down`.
    """

    size_gib: int
    mib_per_second_per_tib: int
    subnet: str
    security_group: str
    bucket: str | None
    efa: bool
    metadata_mode: Literal["AUTOMATIC"] | None
    compression: Literal["LZ4"] = "LZ4"
    deployment: Literal["PERSISTENT_2"] = "PERSISTENT_2"
    final_backup: bool


@dataclass(frozen=True, kw_only=True)
class KeyPlan(CloudKeyPlan):
    """services: whose own principals must be able to use it (`logs.<region>.amazonaws.com` …).

    scaling_grant: the service-linked role of Auto Scaling needs it too, to start nodes with encrypted volumes.
    repository_grant: the roles by which file systems read and write the buckets that they show need it too.
    """

    services: tuple[str, ...]
    scaling_grant: bool
    repository_grant: bool


@dataclass(frozen=True, kw_only=True)
class EventPlan:
    """A rule of EventBridge. source and detail_type: of the event pattern."""

    name: str
    source: str
    detail_type: str


@dataclass(frozen=True, kw_only=True)
class InterruptionPlan:
    """What EC2 announces, into one encrypted queue."""

    events: tuple[EventPlan, ...]
    retention_seconds: int


@dataclass(frozen=True, kw_only=True)
class BudgetPlan(AlarmPlan):
    """A budget of AWS on what carries the stack's tag, by the month: an alarm after the fact.

    thresholds_percent: of the limit, of actual cost. tag: the key of the stack's tag.
    """

    monthly_usd: float
    thresholds_percent: tuple[int, ...]
    tag: str


@dataclass(frozen=True, kw_only=True)
class AwsPlan(CloudPlan):
    """A cluster in one region of AWS. File systems stand in the first zone, and volumes and interfaces have tags, too.

    storage: buckets and file systems. permissions: of the nodes' role. storage_role_permissions: of the role that the
    sessions of jobs and tenants are narrowed from, none where there is no bucket. eks: the cluster of Kubernetes that
    the groups belong to, None for plain machines: see AwsHostsPlan and AwsEksPlan.
    """

    network: AwsNetworkPlan
    access: AwsAccessPlan
    groups: tuple[AwsGroupPlan, ...]
    storage: tuple[BucketPlan | LustrePlan, ...]
    key: KeyPlan
    permissions: tuple[Statement, ...]
    storage_role_permissions: tuple[Statement, ...]
    eks: EksPlan | None
    interruption: InterruptionPlan
    budget: BudgetPlan | None

    @property
    def remains(self) -> tuple[str, ...]:
        files = (item.name for item in self.storage if isinstance(item, LustrePlan) and item.final_backup)
        return (*super().remains, *(f"a backup of {name}, which costs until somebody deletes it" for name in files))


@dataclass(frozen=True, kw_only=True)
class AwsHostsPlan(AwsPlan):
    """Plain machines, which playbooks make into nodes."""

    eks: None = None

    @property
    def commands(self) -> tuple[CommandPlan, ...]:
        jump: tuple[CommandPlan, ...] = ()
        if self.access.head:
            proxy = ("ssh", "-W", "%h:%p", f"{self.access.user}@${{{self.access.head}}}")
            jump = (here(f"{SSH_CALLERS}, to nodes", *proxy),)
        elif self.access.session_manager:
            jump = (here(f"{SSH_CALLERS}, to nodes", "aws", "ssm", "start-session", "--target", "${instance}"),)
        return (*jump, *super().commands)


@dataclass(frozen=True, kw_only=True)
class AwsEksPlan(AwsPlan):
    """A cluster of Kubernetes, whose nodes EKS makes."""

    eks: EksPlan

    @property
    def charts(self) -> tuple[ChartPlan, ...]:
        return self.eks.tenant.charts if self.eks.tenant else ()

    @property
    def commands(self) -> tuple[CommandPlan, ...]:
        token = ("aws", "eks", "get-token", "--region", self.region, "--cluster-name", self.eks.name)
        tenant = self.eks.tenant.commands if self.eks.tenant else ()
        return (here("up, status, train", *token), *tenant, *super().commands)
