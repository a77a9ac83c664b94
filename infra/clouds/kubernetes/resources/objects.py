"""A tenant's charts and objects, for any cluster that a kubeconfig leads to.

The engine's resources of the provider `kubernetes` are named by API version and kind, and take an object as it is; its
SDK's typed classes know no custom resources and cost a second of every plan, so they are not used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pulumi import ComponentResource, CustomResource, Input, Output, ProviderResource, ResourceOptions

from infra.clouds.kubernetes.plan.identity import CONFIG
from infra.clouds.kubernetes.plan.model import ChartPlan, Manifest, TenantPlan
from infra.clouds.kubernetes.plan.tenant import of

VERSION = "4.34.2"  # of the provider


@dataclass(frozen=True, kw_only=True)
class TenantArgs:
    """kubeconfig: a file's path or its text, which is kept as a secret. context: None for the current one. role: of the
    variables of the pods' identity those that only the cloud knows."""

    plan: TenantPlan
    kubeconfig: Input[str]
    context: str | None = None
    role: Mapping[str, Input[str]] = field(default_factory=dict)


class Tenant(ComponentResource):
    """Definitions come before what they define: objects wait for the chart that brings their kind, the namespace, and
    what stands above them."""

    def __init__(self, name: str, args: TenantArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:kubernetes:Tenant", name, {}, opts)
        provider = ProviderResource(
            "kubernetes",
            f"{name}-cluster",
            {
                "kubeconfig": Output.secret(args.kubeconfig),
                "context": args.context,
                "clusterIdentifier": name,  # else a renewed kubeconfig may look like another cluster
                "enableServerSideApply": "true",
            },
            ResourceOptions(parent=self, version=VERSION),
        )
        releases: dict[str, CustomResource] = {}
        for chart in args.plan.charts:
            releases[chart.name] = _release(chart, [releases[each] for each in chart.after], self, provider)
        space: list[CustomResource] = []
        for manifest in args.plan.manifests:
            needs = [releases[manifest.chart]] if manifest.chart in releases else []
            applied = _applied(manifest, [*needs, *(space if manifest.namespaced else [])], self, provider)
            if manifest.body["kind"] == "Namespace":
                space = [applied]
        if args.plan.identity is not None:
            body = of("v1", "ConfigMap", CONFIG, args.plan.namespace)
            learnt = Manifest(body={**body, "data": {**args.plan.identity.variables, **args.role}})
            _applied(learnt, space, self, provider)
        self.register_outputs({})


def _release(
    chart: ChartPlan, after: list[CustomResource], parent: Tenant, provider: ProviderResource
) -> CustomResource:
    inputs: dict[str, Any] = {
        "name": chart.name,
        "chart": chart.reference,
        "version": chart.version,
        "namespace": chart.namespace,
        "createNamespace": True,
        "atomic": True,
        "timeout": 900,
        "values": dict(chart.values),
        "compat": "true",
        **({"repositoryOpts": {"repo": chart.repository}} if chart.repository else {}),
    }
    opts = ResourceOptions(parent=parent, provider=provider, depends_on=after)
    return CustomResource("kubernetes:helm.sh/v3:Release", chart.name, inputs, opts)


def _applied(
    manifest: Manifest, after: list[CustomResource], parent: Tenant, provider: ProviderResource
) -> CustomResource:
    version = manifest.body["apiVersion"]
    kind = f"kubernetes:{version if '/' in version else f'core/{version}'}:{manifest.body['kind']}"
    opts = ResourceOptions(parent=parent, provider=provider, depends_on=after)
    return CustomResource(kind, manifest.name, dict(manifest.body), opts)
