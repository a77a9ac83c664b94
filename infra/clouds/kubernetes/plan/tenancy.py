"""A tenant's charts and objects, the same for a cluster that is there and for one that a stack of EKS or ACK makes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from infra.clouds.kubernetes.plan import alerts, charts, jobs, queues
from infra.clouds.kubernetes.plan.identity import PodIdentity
from infra.clouds.kubernetes.plan.model import Manifest, PodGroupPlan, TenantPlan
from infra.clouds.kubernetes.plan.tenant import tenant
from infra.clouds.kubernetes.spec.cluster import Components, Tenancy
from infra.plan.model import SharedPlan


def tenant_plan(
    asked: Tenancy, groups: Sequence[PodGroupPlan], components: Components, identity: PodIdentity | None = None
) -> TenantPlan:
    """groups: the nodes with GPUs that the tenant has. identity: see TenantPlan."""
    return TenantPlan(
        namespace=asked.name,
        image=asked.image,
        form=asked.form,
        charts=tuple(charts.charts(asked, groups, components)),
        manifests=tuple(_manifests(asked, groups, components, identity)),
        identity=identity,
    )


def _manifests(
    asked: Tenancy, groups: Sequence[PodGroupPlan], components: Components, identity: PodIdentity | None
) -> Iterator[Manifest]:
    volumes = [SharedPlan(name=item.name, kind=item.kind, mount=item.mount) for item in asked.volumes]
    sizes = [(item.size_gib, item.storage_class) for item in asked.volumes]
    claims = [(plan, *size) for plan, size in zip(volumes, sizes, strict=True)]
    yield from tenant(asked.name, groups, claims, installs=components.install)
    if identity is not None:
        yield identity.policy(asked.name)
    if components.install:
        yield from charts.policies(groups)
    yield from queues.queues(asked.name, groups)
    if asked.form == "trainjob":
        yield jobs.runtime(asked.name, groups[0], volumes, asked.image, identity)
    yield alerts.alerts(asked.name, groups)
    if asked.serving is not None:
        yield alerts.scaler(asked.name, asked.serving)
