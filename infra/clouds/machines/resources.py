"""Own machines are declared as a stack output alone."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from pulumi import ComponentResource, Output

from infra import handover
from infra.clouds.machines.plan import MachineGroupPlan, MachinesPlan

NODE_PYTHON = "/opt/gpufleet/venv/bin/python"


class Cluster(ComponentResource):
    """Represents the hosts in the engine's state; it has no children."""

    def __init__(self, name: str) -> None:
        super().__init__("gpufleet:machines:Cluster", name, {})
        self.register_outputs({})


def declare(plan: MachinesPlan, root: Path) -> Output[dict[str, Any]]:
    """Declares the cluster and returns its handover as plain JSON."""
    Cluster(plan.stack)
    return Output.from_input(cluster_handover(plan, root).to_json())


def cluster_handover(plan: MachinesPlan, root: Path) -> handover.Handover:
    """The handover; `up` writes the known_hosts file from its keys."""
    known_hosts = root / ".gpufleet" / plan.cloud / plan.stack / "known_hosts"
    head = plan.head
    return handover.Handover(
        stack=plan.stack,
        cloud=plan.cloud,
        region=None,
        access=handover.Access(
            user=plan.access.user,
            key_file=plan.access.key_file,
            known_hosts_file=str(known_hosts),
            ssh_from=plan.access.ssh_from,
        ),
        nodes=tuple(
            handover.Node(
                name=node.name,
                group=node.group,
                address=node.address,
                port=node.port,
                host_key=node.host_key,
                prefix=node.prefix,
            )
            for node in plan.nodes
        ),
        groups=tuple(map(_group, plan.groups)),
        storage=tuple(handover.Storage.of(storage, "") for storage in plan.storage),
        store=handover.Store(
            host=head.group if head else "control", address=head.address if head else plan.network.gateway or ""
        ),
        environment=handover.Environment(python=plan.python or NODE_PYTHON, shared=plan.python is not None),
    )


def _group(plan: MachineGroupPlan) -> handover.Group:
    disks = tuple(handover.Disks(count=len(disk.devices), **asdict(disk)) for disk in plan.disks)
    group, rdma = handover.Group.of(plan).model_copy(update={"disks": disks}), plan.rdma
    if rdma is None:
        return group
    ports = handover.Rdma(
        link_layer=rdma.link_layer,
        hcas=rdma.hcas,
        gbits=rdma.gbits,
        partition_key=rdma.partition_key,
        partition_index=rdma.partition_index,
    )
    return group.model_copy(update={"rdma": ports, "variables": dict(rdma.nccl)})
