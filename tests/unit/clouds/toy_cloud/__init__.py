"""A cloud as small as one can be: one folder, and one row in `infra.registry.CLOUDS`."""

from infra.registry import Cloud

CLOUD = Cloud(
    spec="toy_cloud.spec:ToySpec",
    plan="toy_cloud.plan:decide",
    resources="toy_cloud.resources:declare",
    checks=("toy_cloud.checks",),
    policy=("toy_cloud.policy",),
    summary="toy_cloud.picture:ToySummary",
    picture="toy_cloud.picture:scene",
)
