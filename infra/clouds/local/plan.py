"""The plan of a stack on this computer."""

from __future__ import annotations

from infra.clouds.local.spec import LocalSpec
from infra.plan.addresses import Wanted, allot
from infra.plan.model import AccessPlan, GroupPlan, LocalNetworkPlan, LocalPlan, NodePlan, StoragePlan
from infra.plan.pricing import local_cost


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
        cost=local_cost(groups),
        findings=(),
    )


def _groups(spec: LocalSpec) -> tuple[GroupPlan, ...]:
    requests = [Wanted(count=group.count, given=group.addresses) for group in spec.nodes]
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
        for group, addresses in zip(spec.nodes, allot(spec.network.cidr, requests), strict=True)
    )
