"""Existing hosts with their own fabric."""

from infra.registry import Cloud

CLOUD = Cloud(
    spec="infra.clouds.machines.spec:MachinesSpec",
    plan="infra.clouds.machines.plan:decide",
    resources="infra.clouds.machines.resources:declare",
    checks=("infra.clouds.machines.checks",),
    summary="infra.clouds.machines.summary:MachinesSummary",
)
