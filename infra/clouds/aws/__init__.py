"""Amazon Web Services: nodes in one region of the standard partition, or an EKS cluster of them."""

from infra.registry import Cloud

CLOUD = Cloud(
    spec="infra.clouds.aws.spec.cluster:AwsSpec",
    plan="infra.clouds.aws.plan.cluster:decide",
    resources="infra.clouds.aws.resources.cluster:declare",
    checks=(
        *(f"infra.clouds.aws.checks.{name}" for name in ("access", "eks", "market", "nodes", "price", "storage")),
        *(f"infra.checks.{name}" for name in ("drivers", "load", "prices")),
    ),
    policy=tuple(
        f"infra.clouds.aws.policy.{name}"
        for name in (
            *("identity.credentials", "identity.iam", "identity.trust"),
            *("network.addresses", "network.ssh", "network.vpc"),
            *("nodes.cost", "nodes.fleets", "nodes.metadata"),
            *("storage.buckets", "storage.deletion", "storage.disks", "storage.sharing"),
            *("eks", "tags"),
        )
    ),
    policy_tables="infra.clouds.aws.policy.tables:TABLES",
    picture="infra.clouds.aws.picture:scene",
    summary="infra.clouds.aws.plan.summary:AwsSummary",
    invokes="infra.clouds.aws.invokes:INVOKES",
    replacement="infra.clouds.aws.replacement:REPLACES",
)
