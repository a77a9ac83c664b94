"""Plans a tenant's Kubernetes objects from its spec."""

from __future__ import annotations

from infra.clouds.kubernetes.plan.model import ClusterAccessPlan, KubernetesPlan, PodGroupPlan
from infra.clouds.kubernetes.plan.pods import SPOT_SECONDS, pods
from infra.clouds.kubernetes.plan.tenancy import tenant_plan
from infra.clouds.kubernetes.spec import cluster as specs
from infra.plan.model import Cost, CostItem, NetworkPlan, SharedPlan


def decide(stack: str, spec: specs.KubernetesSpec) -> KubernetesPlan:
    """The plan of a tenant, before any rule. What the cluster costs is its owner's to know."""
    groups = tuple(map(_group, spec.nodes))
    storage = tuple(SharedPlan(name=item.name, kind=item.kind, mount=item.mount) for item in spec.storage)
    items = [
        CostItem(name=group.name, quantity=group.count, hourly=None, source="the cluster is billed elsewhere")
        for group in groups
    ]
    return KubernetesPlan(
        stack=stack,
        cloud=spec.cloud,
        region=None,
        network=NetworkPlan(cidr="", gateway=None),
        access=ClusterAccessPlan(kubeconfig=spec.kubeconfig, context=spec.context),
        groups=groups,
        storage=storage,
        cost=Cost(
            currency="USD", hourly=0.0, hourly_max=0.0, per_gpu_hour=None, per_pflop_hour=None, items=tuple(items)
        ),
        findings=(),
        tenant=tenant_plan(spec.tenancy, groups, spec.components),
    )


def _group(spec: specs.PodNodes) -> PodGroupPlan:
    return pods(
        spec.name,
        spec.count,
        (spec.gpu, spec.gpus),
        labels=spec.labels,
        fabric=(spec.fabric.resource, spec.fabric.count) if spec.fabric else None,
        notice_seconds=SPOT_SECONDS if spec.capacity == "spot" else None,
        topology=spec.topology,
        mig=spec.mig,
    )
