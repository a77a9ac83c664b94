"""The plan of a tenant as text for people."""

from __future__ import annotations

from infra.clouds.kubernetes.plan.model import KubernetesPlan, PodGroupPlan
from infra.plan.summary import Summary


class KubernetesSummary(Summary[KubernetesPlan, PodGroupPlan]):
    """Says what jobs become and which charts come with them; the network is the cluster's own."""

    @property
    def location(self) -> str:
        return f"namespace {self.plan.tenant.namespace} of {self.plan.access.context}"

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        tenant = self.plan.tenant
        charts = ", ".join(f"{chart.name} {chart.version}" for chart in tenant.charts)
        jobs = f"{tenant.form} · {tenant.image.partition('@')[0]}"
        return (*super().rows[1:], ("jobs", jobs), ("charts", charts or "none: the cluster has its own"))

    def group(self, group: PodGroupPlan) -> str:
        fabric = "" if group.fabric == "tcp" else f"{group.resources[group.fabric]} × {group.fabric}"
        labels = ", ".join(f"{key}={value}" for key, value in group.labels.items())
        return " · ".join(filter(None, [f"{group.gpus_per_node} × {group.gpu} each", group.capacity, fabric, labels]))

    @property
    def access(self) -> str:
        return f"context {self.plan.access.context} of {self.plan.access.kubeconfig}"
