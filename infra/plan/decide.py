"""From what was asked to what will be: pure, so that the same file is always the same plan."""

from __future__ import annotations

from dataclasses import replace

from infra.plan.addresses import Wanted, allot
from infra.plan.plan import AccessPlan, Finding, GroupPlan, LocalPlan, NetworkPlan, NodePlan, Plan, StoragePlan
from infra.plan.price import local_cost
from infra.plan.rules import check
from infra.spec import LocalSpec, StackFile


def decide(file: StackFile) -> Plan:
    """The plan of a stack file, with what every preflight rule found; a plan with errors must not be declared."""
    plan = _local(file.stack, file.spec)
    return replace(plan, findings=check(file.spec, plan))


def described(finding: Finding, file: StackFile) -> str:
    """A finding as one line: `stacks/Pulumi.x.yaml:14 cluster.nodes[1].count: …`."""
    return f"{file.path.as_posix()}:{file.locate(finding.path)} {finding.path}: {finding.message} [{finding.rule}]"


def _local(stack: str, spec: LocalSpec) -> LocalPlan:
    groups = _groups(spec)
    gateway = "127.0.0.1" if spec.isolation == "process" else str(spec.network.cidr.network_address + 1)
    return LocalPlan(
        stack=stack,
        cloud=spec.cloud,
        region=None,
        isolation=spec.isolation,
        network=NetworkPlan(cidr=str(spec.network.cidr), gateway=gateway),
        access=AccessPlan(public_keys=(spec.access.public_key,) if spec.access.public_key else ()),
        groups=groups,
        storage=tuple(StoragePlan(name=item.name, kind=item.kind, mount=item.mount) for item in spec.storage),
        cost=local_cost(groups),
        findings=(),
    )


def _groups(spec: LocalSpec) -> tuple[GroupPlan, ...]:
    wanted = [Wanted(count=group.count, given=group.addresses) for group in spec.nodes]
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
        for group, addresses in zip(spec.nodes, allot(spec.network.cidr, wanted), strict=True)
    )
