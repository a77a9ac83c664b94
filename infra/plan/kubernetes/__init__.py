"""A tenant of a Kubernetes cluster, decided: every object that will be applied, as plain data."""

from infra.plan.kubernetes.decide import decide
from infra.plan.kubernetes.plan import ChartPlan, KubernetesPlan, Manifest, PodGroupPlan, TenantPlan

__all__ = ["ChartPlan", "KubernetesPlan", "Manifest", "PodGroupPlan", "TenantPlan", "decide"]
