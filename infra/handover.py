"""What the nodes and the people are told about a cluster: the typed stack output `cluster`.

The inventory, the jobs and the command line read this and nothing else of the cluster.
Round trip: `Handover.model_validate(handover.to_json()) == handover`.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from infra import catalog
from infra.catalog import drivers
from infra.plan.plan import GroupPlan, StoragePlan


class _Told(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Access(_Told):
    """How to log in; both files are on the controlling computer.

    key_file: the private key of the key pair, empty where no login key is known to the nodes.
    """

    user: str
    key_file: str
    known_hosts_file: str


class Node(_Told):
    """One machine, as it really is.

    host_key: its SSH host key, `type base64`. prefix: the folder in front of its system paths: `/` on a machine of its
    own; on a node that is only a process its own folder, since an unprivileged login cannot write /etc. proxy: the
    shell command that carries SSH to it (`%h:%p`), empty where it is reached directly.
    """

    name: str
    group: str
    address: str
    port: int
    host_key: str
    prefix: str
    proxy: str = ""


class Rdma(_Told):
    """The RDMA ports that every node of a group must have, rail after rail.

    link_layer, partition_key: as the kernel shows them; the key stands at partition_index of every port's table.
    """

    link_layer: str
    hcas: tuple[str, ...]
    gbits: int
    partition_key: str | None
    partition_index: int | None


class Group(_Told):
    """Equal machines; gpu is None without one.

    fabric_devices: the RDMA devices that each must show, 0 where nobody could say. rdma: None where the cloud sees to
    the fabric. variables: of the environment of every rank. drivers: what the lock says of the GPU's software, by
    distribution; a node takes what stands under its own.
    """

    name: str
    count: int
    gpu: str | None
    gpus_per_node: int
    fabric: str
    fabric_devices: int = 0
    rdma: Rdma | None = None
    variables: dict[str, str] = {}
    drivers: dict[str, dict[str, Any]] = {}

    @classmethod
    def of(cls, plan: GroupPlan) -> Group:
        """What is told of a planned group, the same on every cloud."""
        return cls(
            name=plan.name,
            count=plan.count,
            gpu=plan.gpu,
            gpus_per_node=plan.gpus_per_node,
            fabric=plan.fabric,
            fabric_devices=plan.fabric_devices,
            drivers=_locks(plan.gpu),
        )


def _locks(gpu: str | None) -> dict[str, dict[str, Any]]:
    if gpu is None:
        return {}
    rows = drivers.load().by_distribution(catalog.load().gpu(gpu))
    return {distribution: row.told() for distribution, row in rows.items()}


class Storage(_Told):
    """Shared storage, and the path where jobs find it on every node.

    source: what is to be mounted there: of a `bucket` its name, of `lustre` its address (`<dns name>@tcp:/<mount
    name>`); empty where the path is there as it is. options: of the mount, in the words of what mounts it.
    """

    name: str
    path: str
    kind: str = "folder"
    source: str = ""
    options: tuple[str, ...] = ()

    @classmethod
    def of(cls, plan: StoragePlan, source: str) -> Storage:
        """What is told of planned storage that nodes mount."""
        return cls(name=plan.name, path=plan.mount, kind=plan.kind, source=source, options=plan.options)


class Store(_Told):
    """The rendezvous store of training jobs: who runs it, and the address where the nodes reach it."""

    host: str
    address: str


class Environment(_Told):
    """python: the interpreter that runs jobs on every node. shared: it is there already, and nodes only read it."""

    python: str
    shared: bool = False


class Kubernetes(_Told):
    """The cluster whose nodes these are, by the name that its cloud knows it by."""

    cluster: str


class Handover(_Told):
    """The whole cluster, as told. kubernetes: None for plain machines, which playbooks make into nodes."""

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

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, ready to be a stack output or a file."""
        return self.model_dump(mode="json")
