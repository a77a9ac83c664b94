"""Nodes on this computer, as processes or as systemd-nspawn machines."""

from infra.registry import Cloud

CLOUD = Cloud(
    spec="infra.clouds.local.spec:LocalSpec",
    plan="infra.clouds.local.plan:decide",
    resources="infra.clouds.local.resources:declare",
    checks=("infra.clouds.local.checks",),
    summary="infra.clouds.local.summary:LocalSummary",
    replacement="infra.clouds.local.replacement:REPLACES",
)
