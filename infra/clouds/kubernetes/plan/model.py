"""The finished plan of a tenant: its charts and its objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from infra.plan.chart import ChartPlan
from infra.plan.commands import CommandPlan, as_root, here
from infra.plan.model import AccessPlan, GroupPlan, Plan

if TYPE_CHECKING:
    from infra.clouds.kubernetes.plan.identity import PodIdentity

Object = Mapping[str, Any]  # an object of Kubernetes, as its API takes it


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """An object to apply. chart: the one that brings the definition of its kind, None for Kubernetes' own kinds."""

    body: Object
    chart: str | None = None

    @property
    def name(self) -> str:
        """Unique in a stack: the kind in small letters, and the object's name."""
        return f"{self.body['kind'].lower()}-{self.body['metadata']['name']}"

    @property
    def namespaced(self) -> bool:
        return "namespace" in self.body["metadata"]


@dataclass(frozen=True, kw_only=True)
class PodGroupPlan(GroupPlan):
    """Nodes that jobs run on. resources: what a pod takes of a node. grace_seconds: from the notice to the end.
    levels: node labels of the topology, the widest first, the node last.
    """

    capacity: Literal["on-demand", "spot"]
    labels: Mapping[str, str]
    resources: Mapping[str, str]
    grace_seconds: int
    levels: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class TenantPlan:
    """A tenant's share of a cluster. form: what a job becomes. identity: how its pods take on a role of the cloud by a
    token, None where they need none, or the cloud knows another way."""

    namespace: str
    image: str
    form: Literal["trainjob", "jobset", "job"]
    charts: tuple[ChartPlan, ...]
    manifests: tuple[Manifest, ...]
    identity: PodIdentity | None = None

    @property
    def commands(self) -> tuple[CommandPlan, ...]:
        """Charts bring pods that are root on nodes: drivers, device plug-ins, exporters."""
        return tuple(
            as_root(
                f"up, chart {chart.name}" + (f" of sha256 {chart.sha256}" if chart.archive else ""),
                *("helm", "install", chart.name, chart.reference, "--version", chart.version),
                *(("--repo", chart.repository) if chart.repository else ()),
            )
            for chart in self.charts
        )


@dataclass(frozen=True, kw_only=True)
class ClusterAccessPlan(AccessPlan):
    """Which cluster, as which user. kubeconfig: a file of the controlling computer."""

    public_keys: tuple[str, ...] = ()
    kubeconfig: str
    context: str


@dataclass(frozen=True, kw_only=True)
class KubernetesPlan(Plan):
    """A tenant of a cluster that is there already."""

    access: ClusterAccessPlan
    groups: tuple[PodGroupPlan, ...]
    tenant: TenantPlan

    @property
    def charts(self) -> tuple[ChartPlan, ...]:
        return self.tenant.charts

    @property
    def commands(self) -> tuple[CommandPlan, ...]:
        login = ("kubectl", "--kubeconfig", self.access.kubeconfig, "--context", self.access.context)
        return (
            here("up, status, train, with the credential plug-in of this file", *login),
            *self.tenant.commands,
            *super().commands,
        )
