"""The plan of a cluster of listed hosts: no cloud is involved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import Literal

from infra.clouds.machines import spec
from infra.plan.commands import SSH_CALLERS, CommandPlan, as_root, here
from infra.plan.disks import RAID_CHUNK_KIB
from infra.plan.model import PLAYBOOK, AccessPlan, Cost, CostItem, GroupPlan, NetworkPlan, NodePlan, Plan, SharedPlan

HEAD = "head"


@dataclass(frozen=True, kw_only=True)
class MachinePlan(NodePlan):
    """A host. prefix: the folder in front of its system paths, "/" where the login may write there."""

    host_key: str
    rack: str | None
    bmc: str | None
    prefix: str


@dataclass(frozen=True, kw_only=True)
class RdmaPlan:
    """The RDMA ports of every host of a group, rail after rail, and NCCL's variables for them.

    link_layer: as the kernel spells it. gbits: of one port. partition_key, partition_index: what each port's table of
    keys must hold, and where; None without partitions.
    """

    link_layer: str
    hcas: tuple[str, ...]
    gbits: int
    partition_key: str | None
    partition_index: int | None
    nccl: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class DisksPlan:
    """Disks of each host, by their paths, as one file system. raid_level: 0 for a stripe, None for a single one."""

    name: str
    mount: str
    devices: tuple[str, ...]
    raid_level: Literal[0] | None
    chunk_kib: int | None
    encrypted: bool
    file_system: Literal["xfs"] = "xfs"


@dataclass(frozen=True, kw_only=True)
class MachineGroupPlan(GroupPlan):
    """Equal hosts, those that share leaf switches side by side: ranks are counted in this order."""

    nodes: tuple[MachinePlan, ...]
    rdma: RdmaPlan | None
    disks: tuple[DisksPlan, ...]


@dataclass(frozen=True, kw_only=True)
class LoginPlan(AccessPlan):
    """How to log in on every host. key_file: on the controlling computer. ssh_from: the networks that the hosts' own
    packet filters let log in; none without filters."""

    public_keys: tuple[str, ...] = ()
    user: str
    key_file: str
    ssh_from: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PowerPlan:
    """Commands of the controlling computer that wake a host or put it to sleep; {bmc}, {host} in them."""

    wake: tuple[str, ...] | None
    sleep: tuple[str, ...] | None


@dataclass(frozen=True, kw_only=True)
class MachinesPlan(Plan):
    """Existing hosts. python: an interpreter that they have already, else None."""

    access: LoginPlan
    groups: tuple[MachineGroupPlan, ...]
    python: str | None
    power: PowerPlan

    @property
    def head(self) -> MachinePlan | None:
        """The host that runs the rendezvous store; None where the controlling computer does."""
        return next((node for node in self.nodes if node.group == HEAD), None)

    @property
    def nodes(self) -> tuple[MachinePlan, ...]:
        return tuple(node for group in self.groups for node in group.nodes)

    @property
    def commands(self) -> tuple[CommandPlan, ...]:
        power, access = self.power, self.access
        return (
            *((here("up, for each host that does not answer", *power.wake),) if power.wake else ()),
            *((here("down, for each host", *power.sleep),) if power.sleep else ()),
            here(f"{SSH_CALLERS}, on every host", "ssh", "-i", access.key_file, f"{access.user}@${{address}}"),
            as_root(*PLAYBOOK),
            *(
                as_root(
                    f"up, empty disks of {group.name}", f"mkfs.{disks.file_system}", "-L", disks.name, *disks.devices
                )
                for group in self.groups
                for disks in group.disks
            ),
            *((as_root("up, train", self.python),) if self.python else ()),
            *super().commands,
        )


def decide(stack: str, cluster: spec.MachinesSpec) -> MachinesPlan:
    """The plan of a stack of own machines, before any check."""
    groups, access, power = tuple(map(_group, cluster.nodes)), cluster.access, cluster.power or spec.Power()
    items = [CostItem(name=group.name, quantity=group.count, hourly=0.0, source="owned") for group in groups]
    return MachinesPlan(
        stack=stack,
        cloud=cluster.cloud,
        region=None,
        network=NetworkPlan(
            cidr=str(_around(host.address for group in cluster.nodes for host in group.hosts)),
            gateway=str(access.control) if access.control else None,
        ),
        access=LoginPlan(user=access.user, key_file=access.key_file, ssh_from=tuple(map(str, access.ssh_from))),
        groups=groups,
        storage=tuple(SharedPlan(name=item.name, kind=item.kind, mount=item.mount) for item in cluster.storage),
        cost=Cost(
            currency="USD", hourly=0.0, hourly_max=0.0, per_gpu_hour=None, per_pflop_hour=None, items=tuple(items)
        ),
        findings=(),
        python=cluster.python,
        power=PowerPlan(wake=power.wake, sleep=power.sleep),
    )


def _group(group: spec.MachineNodes) -> MachineGroupPlan:
    racks = list(dict.fromkeys(host.rack for host in group.hosts))
    hosts = sorted(group.hosts, key=lambda host: racks.index(host.rack))  # a stable sort: the file's order within
    return MachineGroupPlan(
        name=group.name,
        count=len(hosts),
        gpu=group.gpu,
        gpus_per_node=group.gpus or 0,
        fabric=group.fabric.kind if group.fabric else "tcp",
        rdma=_rdma(group.fabric) if group.fabric else None,
        disks=tuple(map(_disks, group.disks)),
        nodes=tuple(
            MachinePlan(
                name=host.name,
                group=group.name,
                address=str(host.address),
                port=host.port,
                host_key=" ".join(host.host_key.split()[:2]),
                rack=host.rack,
                bmc=str(host.bmc) if host.bmc else None,
                prefix=host.prefix or "/",
            )
            for host in hosts
        ),
    )


def _disks(disks: spec.HostDisks) -> DisksPlan:
    striped = len(disks.devices) > 1
    return DisksPlan(
        name=disks.name,
        mount=disks.mount,
        devices=disks.devices,
        raid_level=0 if striped else None,
        chunk_kib=RAID_CHUNK_KIB if striped else None,
        encrypted=disks.encrypted,
    )


def _rdma(fabric: spec.InfiniBand | spec.Roce) -> RdmaPlan:
    """NCCL User Guide, "Environment Variables": `=` before names asks for exactly these; CROSS_NIC 0 keeps each ring on
    its rail, which is right where every card has a switch of its own; IB_PKEY is an index (net_ib, pkey_index)."""
    nccl = {"NCCL_IB_HCA": "=" + ",".join(fabric.hcas), "NCCL_CROSS_NIC": "0"}
    partition = None
    match fabric:
        case spec.InfiniBand():
            partition = fabric.partition
            nccl |= {"NCCL_IB_PKEY": str(partition.index)} if partition else {}
            nccl |= {"NCCL_IB_SL": str(fabric.service_level)} if fabric.service_level is not None else {}
        case spec.Roce():
            nccl |= {"NCCL_IB_GID_INDEX": str(fabric.gid_index), "NCCL_IB_TC": str(fabric.traffic_class)}
    return RdmaPlan(
        link_layer="InfiniBand" if isinstance(fabric, spec.InfiniBand) else "Ethernet",
        hcas=fabric.hcas,
        gbits=fabric.gbits,
        partition_key=partition.key if partition else None,
        partition_index=partition.index if partition else None,
        nccl=nccl,
    )


def _around(addresses: Iterable[IPv4Address]) -> IPv4Network:
    """The smallest network that holds all of these addresses."""
    numbers = list(map(int, addresses))
    return IPv4Network((min(numbers), 32 - (min(numbers) ^ max(numbers)).bit_length()), strict=False)
