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
        for name in ("addresses", "buckets", "disks", "fleets", "iam", "network", "sharing", "trust")
    ),
    picture="infra.clouds.aws.picture:scene",
)
