"""Rules about own hosts: no cloud API checks such a stack file before a job hangs."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address

from infra import catalog
from infra.catalog import compatibility, drivers
from infra.checks.drivers import beside_arm64, too_old
from infra.checks.rule import Violation, rule
from infra.checks.storage import SYSTEM, inside
from infra.clouds.machines.plan import HEAD, MachinesPlan
from infra.clouds.machines.spec import InfiniBand, MachinesSpec
from infra.plan.firewall import too_wide

FULL_MEMBER = 0x8000


@rule("rendezvous-has-a-place", MachinesPlan)
def rendezvous_has_a_place(spec: MachinesSpec, plan: MachinesPlan) -> Iterator[Violation]:
    """The store outlives every rank: it runs on a head, or on the controlling computer (torch, c10d rendezvous)."""
    if plan.head is None and spec.access.control is None:
        yield (
            "cluster.access.control",
            "is missing: name an address of this computer that the hosts reach, or add a group `head`",
        )


@rule("rendezvous-is-private", MachinesPlan)
def rendezvous_is_private(spec: MachinesSpec, plan: MachinesPlan) -> Iterator[Violation]:
    """Traffic of the store is not encrypted (PyTorch, SECURITY.md): it is for private networks."""
    place = plan.head.address if plan.head else str(spec.access.control or "")
    if place and not IPv4Address(place).is_private:
        path = "cluster.nodes" if plan.head else "cluster.access.control"
        yield (
            path,
            f"{place} is a public address, but rendezvous traffic is not encrypted; use a private one",
        )


@rule("head-is-one-host-without-gpus", MachinesPlan)
def head_is_one_host_without_gpus(_: MachinesSpec, plan: MachinesPlan) -> Iterator[Violation]:
    """Two hosts would be two stores; with GPUs it would train, and a crash would lose the store."""
    for i, group in enumerate(plan.groups):
        if group.name == HEAD and (group.count > 1 or group.gpu):
            yield f"cluster.nodes[{i}].name", "'head' is one host without GPUs; give this group another name"


@rule("hosts-are-not-open-to-the-world", MachinesPlan)
def hosts_are_not_open_to_the_world(spec: MachinesSpec, _: MachinesPlan) -> Iterator[Violation]:
    """The packet filter of a host has the same limit as a cloud's security groups (infra/plan/firewall.py)."""
    for whole in too_wide(spec.access.ssh_from):
        yield "cluster.access.ssh_from", f"SSH would be open to {whole}; name the networks that people come from"


@rule("filtered-hosts-are-whole-ones", MachinesPlan)
def filtered_hosts_are_whole_ones(spec: MachinesSpec, plan: MachinesPlan) -> Iterator[Violation]:
    """The packet filter is the kernel's: a login without root cannot set it."""
    if spec.access.ssh_from and any(node.prefix != "/" for node in plan.nodes):
        yield "cluster.access.ssh_from", "hosts with a `prefix` cannot have a packet filter; remove one of the two"


@rule("partition-members-can-talk", MachinesPlan)
def partition_members_can_talk(spec: MachinesSpec, _: MachinesPlan) -> Iterator[Violation]:
    """Two limited members of a partition cannot (InfiniBand Architecture 1, 10.9.3); number 0 is no partition."""
    for i, group in enumerate(spec.nodes):
        if not isinstance(group.fabric, InfiniBand) or group.fabric.partition is None:
            continue
        key, path = int(group.fabric.partition.key, 16), f"cluster.nodes[{i}].fabric.partition.key"
        if not key & ~FULL_MEMBER:
            yield path, f"{key:#06x} is no partition: its lower 15 bits are 0"
        elif not key & FULL_MEMBER:
            full = f"{key | FULL_MEMBER:#06x}"
            yield path, f"{key:#06x} is a limited member, and limited members cannot communicate; use {full} (full)"


@rule("every-gpu-has-its-rail", MachinesPlan, level="warning")
def every_gpu_has_its_rail(_: MachinesSpec, plan: MachinesPlan) -> Iterator[Violation]:
    """GPUs that share a port unevenly wait for the one with the most neighbours (DGX SuperPOD, compute fabric)."""
    for i, group in enumerate(plan.groups):
        if group.rdma and group.gpus_per_node and group.gpus_per_node % len(group.rdma.hcas):
            message = f"{len(group.rdma.hcas)} rails do not divide {group.gpus_per_node} GPUs evenly"
            yield f"cluster.nodes[{i}].fabric.hcas", message


@rule("gpus-of-hosts-are-joined", MachinesPlan, level="warning")
def gpus_of_hosts_are_joined(_: MachinesSpec, plan: MachinesPlan) -> Iterator[Violation]:
    """Without RDMA, NCCL goes over TCP, silently and many times slower (NCCL User Guide, NCCL_IB_DISABLE)."""
    for i, group in enumerate(plan.groups):
        if group.gpu and group.count > 1 and group.rdma is None:
            yield f"cluster.nodes[{i}].fabric", "is missing: NCCL falls back to TCP between these hosts"


@rule("racks-are-told-of-all", MachinesPlan)
def racks_are_told_of_all(_: MachinesSpec, plan: MachinesPlan) -> Iterator[Violation]:
    """Ranks are counted rack by rack, so that rings leave a leaf switch as seldom as they can."""
    for i, group in enumerate(plan.groups):
        unknown = [node.name for node in group.nodes if node.rack is None]
        if unknown and len(unknown) < group.count:
            yield f"cluster.nodes[{i}].hosts", f"{unknown[0]} has no `rack`, but others have: set it for all or none"


@rule("gpus-need-the-whole-host", MachinesPlan)
def gpus_need_the_whole_host(_: MachinesSpec, plan: MachinesPlan) -> Iterator[Violation]:
    """A driver is the kernel's: a login without root cannot bring one."""
    for i, group in enumerate(plan.groups):
        if group.gpu and any(node.prefix != "/" for node in group.nodes):
            yield f"cluster.nodes[{i}].hosts", "have a `prefix`, but only root can set up GPUs; remove it"


@rule("disks-need-the-whole-host", MachinesPlan)
def disks_need_the_whole_host(_: MachinesSpec, plan: MachinesPlan) -> Iterator[Violation]:
    """A login without root can neither make file systems nor mount them (mount(8))."""
    for i, group in enumerate(plan.groups):
        if group.disks and any(node.prefix != "/" for node in group.nodes):
            yield f"cluster.nodes[{i}].disks", "cannot be set up on hosts with a `prefix`; remove one of the two"


@rule("disks-have-a-folder-of-their-own", MachinesPlan)
def disks_have_a_folder_of_their_own(_: MachinesSpec, plan: MachinesPlan) -> Iterator[Violation]:
    """What is mounted over a folder in use hides its files (mount(8); Filesystem Hierarchy Standard 3.0)."""
    shared = [item.mount for item in plan.storage]
    for g, group in enumerate(plan.groups):
        for d, disks in enumerate(group.disks):
            used = [*shared, *(other.mount for other in group.disks[:d])]
            hidden = [path for path in SYSTEM if inside(disks.mount, path)]
            hidden += [path for path in used if inside(disks.mount, path) or inside(path, disks.mount)]
            if hidden:
                yield f"cluster.nodes[{g}].disks[{d}].mount", f"{disks.mount} would hide files of {hidden[0]}"


@rule("own-gpus-have-locked-drivers", MachinesPlan)
def own_gpus_have_locked_drivers(_: MachinesSpec, plan: MachinesPlan) -> Iterator[Violation]:
    """A host runs one tuple of driver, CUDA and torch that is tested together (infra/catalog/compatibility.py).

    No stack file names the hosts' distribution: each distribution with a tuple must have a valid one."""
    for i, group in enumerate(plan.groups):
        if group.gpu is None:
            continue
        path, gpu = f"cluster.nodes[{i}].gpu", catalog.load().gpu(group.gpu)
        rows, fabric = drivers.load().by_distribution(gpu), drivers.load().fabric(group.fabric)
        if message := too_old(group.gpu):
            yield path, message
        elif {kind.cpu_arch for kind in catalog.load().types if kind.gpu == group.gpu} == {"arm64"}:
            yield path, beside_arm64(group.gpu)
        elif not rows:
            yield path, f"no driver is locked for {group.gpu}"
        for distribution, row in rows.items():
            for fault in compatibility.faults(row, gpu, distribution, fabric):
                yield path, f"{distribution}: {fault}"
