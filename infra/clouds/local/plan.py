"""The plan of a stack on this computer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from infra.clouds.local.spec import LocalSpec
from infra.plan.addresses import AddressNeed, allot
from infra.plan.commands import CommandPlan, as_root, here
from infra.plan.model import PLAYBOOK, AccessPlan, Cost, CostItem, GroupPlan, NetworkPlan, NodePlan, Plan, StoragePlan


@dataclass(frozen=True, kw_only=True)
class LocalNetworkPlan(NetworkPlan):
    """A network of this computer."""

    gateway: str


@dataclass(frozen=True, kw_only=True)
class LocalPlan(Plan):
    """Nodes on this computer. isolation: an SSH server of one's own, or a machine with its own network and systemd."""

    network: LocalNetworkPlan
    isolation: Literal["process", "machine"]

    @property
    def commands(self) -> tuple[CommandPlan, ...]:
        if self.isolation == "process":  # its nodes are processes of the caller
            return (here("up, for each node", "sshd", "-f", "${config}"), here(*PLAYBOOK))
        return (here("up, for each node", "systemd-nspawn", "--boot", "${node}"), as_root(*PLAYBOOK))


def decide(stack: str, spec: LocalSpec) -> LocalPlan:
    """The plan of a stack on this computer, before any check."""
    groups = _groups(spec)
    gateway = "127.0.0.1" if spec.isolation == "process" else str(spec.network.cidr.network_address + 1)
    return LocalPlan(
        stack=stack,
        cloud=spec.cloud,
        region=None,
        isolation=spec.isolation,
        network=LocalNetworkPlan(cidr=str(spec.network.cidr), gateway=gateway),
        access=AccessPlan(public_keys=(spec.access.public_key,) if spec.access.public_key else ()),
        groups=groups,
        storage=tuple(StoragePlan(name=item.name, kind=item.kind, mount=item.mount) for item in spec.storage),
        cost=_cost(groups),
        findings=(),
    )


def _groups(spec: LocalSpec) -> tuple[GroupPlan, ...]:
    needs = [AddressNeed(count=group.count, given=group.addresses) for group in spec.nodes]
    return tuple(
        GroupPlan(
            name=group.name,
            count=group.count,
            gpu=None,
            gpus_per_node=0,
            fabric="tcp",
            nodes=tuple(
                NodePlan(name=f"{group.name}-{i}", group=group.name, address=str(address), port=spec.network.port)
                for i, address in enumerate(addresses, start=1)
            ),
        )
        for group, addresses in zip(spec.nodes, allot(spec.network.cidr, needs), strict=True)
    )


def _cost(groups: tuple[GroupPlan, ...]) -> Cost:
    """One free item a group."""
    items = tuple(
        CostItem(name=group.name, quantity=group.count, hourly=0.0, source="this computer") for group in groups
    )
    return Cost(currency="USD", hourly=0.0, hourly_max=0.0, per_gpu_hour=None, per_pflop_hour=None, items=items)
