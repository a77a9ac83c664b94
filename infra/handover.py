"""The handover of a cluster to its nodes and users: the typed stack output `cluster`.

The inventory, the jobs and the command line read this and nothing else of the cluster.
Round trip: `Handover.model_validate(handover.to_json()) == handover`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, StringConstraints

from infra import catalog
from infra.catalog import Precision, drivers
from infra.plan.disks import Scratch
from infra.plan.model import GroupPlan, LoadMetric, StoragePlan

HOST = r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}"  # names a node in Ansible, in ssh_config, and its files here
ADDRESS = r"[0-9A-Fa-f.:]*"

HostName = Annotated[str, StringConstraints(pattern=f"^{HOST}$")]
HostAddress = Annotated[str, StringConstraints(pattern=f"^{ADDRESS}$")]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Access(_Section):
    """How to log in; both files are on the controlling computer.

    key_file: the private key that users and playbooks log in with; empty without SSH, as on Kubernetes.
    ssh_from: the networks that the nodes' own packet filters let log in; empty where other firewalls stand before them.
    """

    user: str
    key_file: str
    known_hosts_file: str
    ssh_from: tuple[str, ...] = ()


class Node(_Section):
    """One machine, as it really is.

    host_key: its SSH host key, `type base64`. prefix: the folder in front of its system paths: `/` on a machine of its
    own; on a node that is only a process its own folder, since an unprivileged login cannot write /etc. proxy: the
    shell command that carries SSH to it (`%h:%p`), empty where it is reached directly.
    """

    name: HostName
    group: str
    address: HostAddress
    port: int
    host_key: str
    prefix: str
    proxy: str = ""


class Rdma(_Section):
    """The RDMA ports that every node of a group must have, rail after rail.

    link_layer, partition_key: as the kernel shows them; the key stands at partition_index of every port's table.
    """

    link_layer: str
    hcas: tuple[str, ...]
    gbits: int
    partition_key: str | None
    partition_index: int | None


class Disks(_Section):
    """Disks of a node's own as one file system, `mount`.

    model: the NVMe model that identifies them; devices: their paths instead, where there is none. count: how many
    there are. raid_level: None for a single one. chunk_kib: of the stripe. encrypted: by LUKS, with a key of the node.
    """

    name: str
    mount: str
    file_system: str
    count: int
    model: str = ""
    devices: tuple[str, ...] = ()
    raid_level: int | None = None
    chunk_kib: int | None = None
    encrypted: bool = False

    @classmethod
    def of(cls, plan: Scratch) -> Disks:
        """The section of planned scratch space; its disks are encrypted by their hardware."""
        return cls(
            name="scratch",
            mount=plan.mount,
            file_system=plan.file_system,
            count=plan.disks,
            model=plan.model,
            raid_level=plan.raid_level,
            chunk_kib=plan.chunk_kib,
        )


class Load(_Section):
    """The metric by which each node reports its GPU utilization to its cloud, in percent."""

    namespace: str
    name: str
    dimensions: dict[str, str]

    @classmethod
    def of(cls, plan: LoadMetric | None) -> Load | None:
        """The section of a planned metric."""
        return plan and cls(namespace=plan.namespace, name=plan.name, dimensions=dict(plan.dimensions))


class Group(_Section):
    """Equal machines; gpu is None without one.

    fabric_devices: the RDMA devices that each must show, 0 where unknown. fabric_installer: what brings the fabric's
    driver and libraries to a node (infra/catalog/tables/fabrics.csv), empty where nothing does. rdma: None where the
    cloud sees to the fabric. variables: of the environment of every rank. drivers: what the lock says of the GPU's
    software, by distribution; a node takes what stands under its own. disks: what each node makes of its own disks.
    mig: the slices that each of its GPUs is cut into. gpu_tflops: the dense peak of one GPU by precision, by which
    training computes its MFU; only what the tables have. load: None where nothing scales by it.
    """

    name: str
    count: int
    gpu: str | None
    gpus_per_node: int
    fabric: str
    fabric_devices: int = 0
    rdma: Rdma | None = None
    variables: dict[str, str] = {}
    fabric_installer: dict[str, str] = {}
    drivers: dict[str, dict[str, Any]] = {}
    disks: tuple[Disks, ...] = ()
    mig: tuple[str, ...] = ()
    gpu_tflops: dict[str, float] = {}
    load: Load | None = None

    @classmethod
    def of(cls, plan: GroupPlan) -> Group:
        """The section of a planned group, the same on every cloud."""
        return cls(
            name=plan.name,
            count=plan.count,
            gpu=plan.gpu,
            gpus_per_node=plan.gpus_per_node,
            fabric=plan.fabric,
            fabric_devices=plan.fabric_devices,
            fabric_installer=_installer(plan.fabric),
            drivers=_locks(plan.gpu),
            disks=(Disks.of(plan.scratch),) if plan.scratch else (),
            mig=plan.mig,
            gpu_tflops=_peaks(plan.gpu),
            load=Load.of(plan.load),
        )


def _installer(fabric: str) -> dict[str, str]:
    row = drivers.load().fabric(fabric)
    return row.to_handover() if row else {}


def _locks(gpu: str | None) -> dict[str, dict[str, Any]]:
    if gpu is None:
        return {}
    rows = drivers.load().by_distribution(catalog.load().gpu(gpu))
    return {distribution: row.to_handover() for distribution, row in rows.items()}


def _peaks(gpu: str | None) -> dict[str, float]:
    if gpu is None:
        return {}
    row = catalog.load().gpu(gpu)
    return {name: peak for name in get_args(Precision) if (peak := row.dense_tflops(name)) is not None}


class Storage(_Section):
    """Shared storage, and the path where jobs find it on every node.

    path: empty of a bucket that no node mounts. source: what is to be mounted there: of a `bucket` its name, of
    `lustre` its address (`<dns name>@tcp:/<mount name>`); empty where the path is there as it is. client: the program
    that the node mounts it with, empty where nothing has to. options: of the mount, in the syntax of its client.
    checksum: sha256 of the client's package, where the playbooks know none.
    """

    name: str
    path: str
    kind: str = "folder"
    source: str = ""
    client: str = ""
    options: tuple[str, ...] = ()
    checksum: str = ""

    @classmethod
    def of(cls, plan: StoragePlan, source: str) -> Storage:
        """The section of planned storage that nodes mount, or may only access."""
        return cls(
            name=plan.name,
            path="" if plan.kind == "bucket" and not plan.client else plan.mount,
            kind=plan.kind,
            source=source,
            client=plan.client,
            options=plan.options,
            checksum=plan.checksum,
        )


class Store(_Section):
    """The rendezvous store of training jobs.

    host: the group whose first machine runs it; `control` is the controlling computer, empty is none: a cluster of
    one node needs none, and nodes that may not speak with each other have no use for one. address: where the nodes
    reach it. port: its only TCP port, 0 where any will do.
    """

    host: str
    address: str
    port: int = 0


class Environment(_Section):
    """python: the interpreter that runs jobs on every node. shared: it is there already, and nodes only read it."""

    python: str
    shared: bool = False


class Copied(_Section):
    """What `gpufleet copy` brings from a bucket of another stack into one of this stack's.

    stack: the other one. cloud, region, bucket, prefix: where it is; bucket is empty while the other stack is not up.
    to: the name of this stack's bucket.
    """

    stack: str
    cloud: str
    region: str
    bucket: str
    prefix: str
    to: str


class Kubernetes(_Section):
    """The cluster whose nodes these are, by the name that its cloud knows it by."""

    cluster: str


class Handover(_Section):
    """The whole cluster. kubernetes: None for plain machines, which playbooks make into nodes.

    copies: for users only; nodes never hold the keys of two clouds. storage_role: the role that nodes take on for
    storage sessions of jobs and tenants, as the cloud names it; empty where they have none.
    """

    version: Literal[1] = 1
    stack: str
    cloud: str
    region: str | None
    access: Access
    nodes: tuple[Node, ...]
    groups: tuple[Group, ...]
    storage: tuple[Storage, ...]
    store: Store
    environment: Environment
    kubernetes: Kubernetes | None = None
    copies: tuple[Copied, ...] = ()
    storage_role: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, ready to be a stack output or a file."""
        return self.model_dump(mode="json")
