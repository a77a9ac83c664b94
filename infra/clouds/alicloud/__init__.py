"""Alibaba Cloud: nodes in one region of the China site, or an ACK cluster of them."""

from infra.registry import Cloud

CLOUD = Cloud(
    spec="infra.clouds.alicloud.spec.cluster:AlicloudSpec",
    plan="infra.clouds.alicloud.plan.cluster:decide",
    resources="infra.clouds.alicloud.resources.cluster:declare",
    checks=(
        *(f"infra.clouds.alicloud.checks.{name}" for name in ("access", "market", "nodes", "storage")),
        *(f"infra.checks.{name}" for name in ("drivers", "load", "prices")),
    ),
    policy=tuple(f"infra.clouds.alicloud.policy.{name}" for name in ("keeping", "network", "nodes", "rights")),
    policy_tables="infra.clouds.alicloud.policy.tables:TABLES",
    picture="infra.clouds.alicloud.picture:scene",
    summary="infra.clouds.alicloud.plan.summary:AlicloudSummary",
    invokes="infra.clouds.alicloud.invokes:INVOKES",
    filled="infra.clouds.alicloud.invokes:FILLED",
)
