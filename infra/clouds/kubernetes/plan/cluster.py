"""From what a tenant asks for to its objects."""

from __future__ import annotations

from infra.clouds.kubernetes.plan.model import ClusterAccessPlan, KubernetesPlan, PodGroupPlan
from infra.clouds.kubernetes.plan.pods import SPOT_SECONDS, pods
from infra.clouds.kubernetes.plan.tenancy import tenant_plan
from infra.clouds.kubernetes.spec import cluster as spec
from infra.plan.model import Cost, CostItem, NetworkPlan, SharedPlan


def decide(stack: str, asked: spec.KubernetesSpec) -> KubernetesPlan:
    """The plan of a tenant, before any rule. What the cluster costs is its owner's to know."""
    groups = tuple(map(_group, asked.nodes))
    storage = tuple(SharedPlan(name=item.name, kind=item.kind, mount=item.mount) for item in asked.storage)
    items = [
        CostItem(name=group.name, quantity=group.count, hourly=None, source="the cluster is billed elsewhere")
        for group in groups
    ]
    return KubernetesPlan(
        stack=stack,
        cloud=asked.cloud,
        region=None,
        network=NetworkPlan(cidr="", gateway=None),
        access=ClusterAccessPlan(kubeconfig=asked.kubeconfig, context=asked.context),
        groups=groups,
        storage=storage,
        cost=Cost(
            currency="USD", hourly=0.0, hourly_max=0.0, per_gpu_hour=None, per_pflop_hour=None, items=tuple(items)
        ),
        findings=(),
        tenant=tenant_plan(asked.tenancy, groups, asked.components),
    )


def _group(asked: spec.PodNodes) -> PodGroupPlan:
    return pods(
        asked.name,
        asked.count,
        (asked.gpu, asked.gpus),
        labels=asked.labels,
        fabric=(asked.fabric.resource, asked.fabric.count) if asked.fabric else None,
        notice_seconds=SPOT_SECONDS if asked.capacity == "spot" else None,
        topology=asked.topology,
        mig=asked.mig,
    )
