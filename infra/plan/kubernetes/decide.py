"""From what a tenant asks for to its objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from infra.plan.kubernetes import charts, jobs, queues, watch
from infra.plan.kubernetes.plan import ClusterAccessPlan, KubernetesPlan, Manifest, PodGroupPlan, TenantPlan
from infra.plan.kubernetes.tenant import GPU, tenant
from infra.plan.plan import Cost, CostItem, NetworkPlan, SharedPlan
from infra.spec import kubernetes as spec

EFA, HUGE_PAGES = "vpc.amazonaws.com/efa", "hugepages-2Mi"
EFA_HUGE_PAGES = "5120Mi"  # EKS User Guide, "Run machine learning training on Amazon EKS with Elastic Fabric Adapter"
SAVE_SECONDS = 600  # a checkpoint of tens of gigabytes to shared storage
SPOT_SECONDS = 110  # EC2 gives two minutes, of which some seconds go by before a pod hears of it


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
        tenant=TenantPlan(
            namespace=asked.tenant,
            image=asked.image,
            form=asked.form,
            charts=tuple(charts.charts(asked)),
            manifests=tuple(_manifests(asked, groups, storage)),
        ),
    )


def _manifests(
    asked: spec.KubernetesSpec, groups: Sequence[PodGroupPlan], storage: Sequence[SharedPlan]
) -> Iterator[Manifest]:
    sizes = [(item.size_gib, item.storage_class) for item in asked.storage]
    yield from tenant(asked.tenant, groups, [(plan, *size) for plan, size in zip(storage, sizes, strict=True)])
    yield from queues.queues(asked.tenant, groups)
    if asked.form == "trainjob":
        yield jobs.runtime(asked.tenant, groups[0], storage, asked.image)
    yield watch.alerts(asked.tenant, groups)
    if asked.serving is not None:
        yield from watch.scaler(asked.tenant, asked.serving)


def _group(asked: spec.PodNodes) -> PodGroupPlan:
    gpu = f"nvidia.com/mig-{asked.mig}" if asked.mig else GPU
    resources = {gpu: str(asked.gpus)}
    if asked.fabric is not None:
        resources[asked.fabric.resource] = str(asked.fabric.count)
        resources |= {HUGE_PAGES: EFA_HUGE_PAGES} if asked.fabric.resource == EFA else {}
    return PodGroupPlan(
        name=asked.name,
        count=asked.count,
        gpu=asked.gpu,
        gpus_per_node=asked.gpus,
        fabric=asked.fabric.resource if asked.fabric else "tcp",
        nodes=(),
        capacity=asked.capacity,
        labels=dict(asked.labels),
        resources=resources,
        grace_seconds=SPOT_SECONDS if asked.capacity == "spot" else SAVE_SECONDS,
        levels=(*asked.topology, "kubernetes.io/hostname"),
    )
