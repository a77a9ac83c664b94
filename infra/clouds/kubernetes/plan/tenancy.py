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
    tenancy: Tenancy, groups: Sequence[PodGroupPlan], components: Components, identity: PodIdentity | None = None
) -> TenantPlan:
    """groups: the nodes with GPUs that the tenant has. identity: see TenantPlan."""
    return TenantPlan(
        namespace=tenancy.name,
        image=tenancy.image,
        form=tenancy.form,
        charts=tuple(charts.charts(tenancy, groups, components)),
        manifests=tuple(_manifests(tenancy, groups, components, identity)),
        identity=identity,
    )


def _manifests(
    tenancy: Tenancy, groups: Sequence[PodGroupPlan], components: Components, identity: PodIdentity | None
) -> Iterator[Manifest]:
    volumes = [SharedPlan(name=item.name, kind=item.kind, mount=item.mount) for item in tenancy.volumes]
    sizes = [(item.size_gib, item.storage_class) for item in tenancy.volumes]
    claims = [(plan, *size) for plan, size in zip(volumes, sizes, strict=True)]
    yield from tenant(tenancy.name, groups, claims, installs=components.install)
    if identity is not None:
        yield identity.policy(tenancy.name)
    if components.install:
        yield from charts.policies(groups)
    yield from queues.queues(tenancy.name, groups)
    if tenancy.form == "trainjob":
        yield jobs.runtime(tenancy.name, groups[0], volumes, tenancy.image, identity)
    yield alerts.alerts(tenancy.name, groups)
    if tenancy.serving is not None:
        yield alerts.scaler(tenancy.name, tenancy.serving)
