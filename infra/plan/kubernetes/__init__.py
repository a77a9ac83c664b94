"""A tenant of a Kubernetes cluster, decided: every object that will be applied, as plain data."""

from infra.plan.kubernetes.decide import decide
from infra.plan.kubernetes.identity import PodIdentity
from infra.plan.kubernetes.plan import ChartPlan, KubernetesPlan, Manifest, PodGroupPlan, TenantPlan
from infra.plan.kubernetes.pods import EFA, ERDMA, SPOT_SECONDS, pods
from infra.plan.kubernetes.tenancy import tenant_plan

__all__ = [
    "EFA",
    "ERDMA",
    "SPOT_SECONDS",
    "ChartPlan",
    "KubernetesPlan",
    "Manifest",
    "PodGroupPlan",
    "PodIdentity",
    "TenantPlan",
    "decide",
    "pods",
    "tenant_plan",
]
