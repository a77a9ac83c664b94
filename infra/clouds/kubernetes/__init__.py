"""A tenant of a Kubernetes cluster that is there already."""

from infra.registry import Cloud

CLOUD = Cloud(
    spec="infra.clouds.kubernetes.spec.cluster:KubernetesSpec",
    plan="infra.clouds.kubernetes.plan.cluster:decide",
    resources="infra.clouds.kubernetes.resources.cluster:declare",
    checks=("infra.clouds.kubernetes.checks.tenant",),
    policy=("infra.clouds.kubernetes.policy.pods",),
    summary="infra.clouds.kubernetes.plan.summary:KubernetesSummary",
)
