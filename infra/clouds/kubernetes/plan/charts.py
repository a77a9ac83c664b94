"""Helm charts, each in one version with the values that differ from its own, held against the keys that it knows.

Helm ignores a misspelt value silently, so `KEYS` names those of each chart that this project sets. On
2026-11-22 each was looked up in the chart's own values.yaml of just this version: gpu-operator at tag v26.7.0 of
NVIDIA/gpu-operator, kube-prometheus-stack at tag 88.5.3 of prometheus-community/helm-charts, the EFA plug-in at its
version 0.5.30 in aws/eks-charts, kueue and trainer in their Go modules (sigs.k8s.io/kueue 0.19.2, kubeflow/trainer
2.3.0). Of KEDA no value is set.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from infra.clouds.kubernetes.plan.chart_lock import locked
from infra.clouds.kubernetes.plan.model import ChartPlan, Manifest, PodGroupPlan
from infra.clouds.kubernetes.plan.pods import EFA as EFA_RESOURCE
from infra.clouds.kubernetes.plan.tenant import of
from infra.clouds.kubernetes.spec.cluster import Components, Tenancy

SHARED = "rdma/"  # how the resources of the network operator's shared device plug-in begin

KEYS: Mapping[str, frozenset[str]] = {
    "gpu-operator": frozenset(
        {
            "driver.enabled",
            "toolkit.enabled",
            "devicePlugin.enabled",
            "mig.strategy",
            "dcgmExporter.enabled",
            "dcgmExporter.serviceMonitor.enabled",
            "dcgmExporter.serviceMonitor.honorLabels",
        }
    ),
    "aws-efa-k8s-device-plugin": frozenset({"tolerations"}),
    "network-operator": frozenset({"nfd.enabled"}),
    "kueue": frozenset({"controllerManager.replicas"}),
    "trainer": frozenset({"jobset.install"}),
    "kube-prometheus-stack": frozenset(
        {
            "prometheus.prometheusSpec.serviceMonitorSelectorNilUsesHelmValues",
            "prometheus.prometheusSpec.podMonitorSelectorNilUsesHelmValues",
            "prometheus.prometheusSpec.ruleSelectorNilUsesHelmValues",
        }
    ),
    "keda": frozenset(),
}


def charts(tenancy: Tenancy, groups: Sequence[PodGroupPlan], components: Components) -> Iterator[ChartPlan]:
    """In the order in which they need each other; none where the cluster has its own."""
    needed = _needed(tenancy, groups, components) if components.install else ()
    return (replace(locked(chart), strict=tenancy.supply == "strict") for chart in needed)


def _needed(tenancy: Tenancy, groups: Sequence[PodGroupPlan], components: Components) -> Iterator[ChartPlan]:
    resources = {resource for group in groups for resource in group.resources}
    yield PROMETHEUS
    yield gpu_operator(components, mixed=any(each.startswith("nvidia.com/mig-") for each in resources))
    if EFA_RESOURCE in resources:
        yield EFA
    if any(each.startswith(SHARED) for each in resources):
        yield NETWORK_OPERATOR
    yield KUEUE
    if tenancy.form != "job":
        yield TRAINER
    if tenancy.serving is not None:
        yield KEDA


def gpu_operator(components: Components, *, mixed: bool) -> ChartPlan:
    """Each layer has one owner: what the image or the cluster brings is switched off here."""
    by_operator = components.driver == "operator"
    return ChartPlan(
        name="gpu-operator",
        chart="gpu-operator",
        repository="https://helm.ngc.nvidia.com/nvidia",
        version="v26.7.0",
        namespace="gpu-operator",
        values={
            "driver": {"enabled": by_operator},
            "toolkit": {"enabled": by_operator},
            "devicePlugin": {"enabled": components.device_plugin == "operator"},
            "mig": {"strategy": "mixed" if mixed else "single"},
            # A GPU's series names the pod that holds it; without `honorLabels` Prometheus calls that `exported_pod`,
            # and `pod` the exporter's own (Prometheus, "scrape_config").
            "dcgmExporter": {"enabled": True, "serviceMonitor": {"enabled": True, "honorLabels": True}},
        },
        after=("kube-prometheus-stack",),
    )


# Without these the operator of Prometheus heeds only monitors and rules that came with its own chart.

PROMETHEUS = ChartPlan(
    name="kube-prometheus-stack",
    chart="kube-prometheus-stack",
    repository="https://prometheus-community.github.io/helm-charts",
    version="88.5.3",
    namespace="monitoring",
    values={
        "prometheus": {
            "prometheusSpec": {
                f"{kind}SelectorNilUsesHelmValues": False for kind in ("serviceMonitor", "podMonitor", "rule")
            }
        }
    },
)
EFA = ChartPlan(
    name="aws-efa-k8s-device-plugin",
    chart="aws-efa-k8s-device-plugin",
    repository="https://aws.github.io/eks-charts",
    version="0.5.30",
    namespace="kube-system",
    values={"tolerations": [{"operator": "Exists"}]},
)
NETWORK_OPERATOR = ChartPlan(
    name="network-operator",
    chart="network-operator",
    repository="https://helm.ngc.nvidia.com/nvidia",
    version="v26.4.1",
    namespace="nvidia-network-operator",
    values={"nfd": {"enabled": False}},  # the GPU operator brings it
    after=("gpu-operator",),
)
KUEUE = ChartPlan(
    name="kueue",
    chart="oci://registry.k8s.io/kueue/charts/kueue",
    repository="",
    version="0.19.2",
    namespace="kueue-system",
    values={"controllerManager": {"replicas": 2}},
)
TRAINER = ChartPlan(
    name="trainer",
    chart="oci://ghcr.io/kubeflow/charts/kubeflow-trainer",
    repository="",
    version="2.3.0",
    namespace="kubeflow-system",
    values={"jobset": {"install": True}},
)
KEDA = ChartPlan(
    name="keda",
    chart="keda",
    repository="https://kedacore.github.io/charts",
    version="2.20.2",
    namespace="keda",
    values={},
    after=("kube-prometheus-stack",),
)


def every() -> tuple[ChartPlan, ...]:
    """All that any stack installs, as the lock has them."""
    operator = gpu_operator(Components(driver="image", device_plugin="operator"), mixed=False)
    return tuple(map(locked, (PROMETHEUS, operator, EFA, NETWORK_OPERATOR, KUEUE, TRAINER, KEDA)))


# By its digest, which stands where a tag could (Network Operator, "Proxy and Air-Gapped Environments"). It is that of
# the tag network-operator-v26.4.1 (Mellanox/network-operator-docs, docs/advanced/images-sha256.rst of 26.4.1).
RDMA_PLUGIN = {
    "repository": "nvcr.io/nvidia/mellanox",
    "image": "k8s-rdma-shared-dev-plugin",
    "version": "sha256:464970d3197fe982b779c48cce74d90f7563ede5daef834bf169db39ee4541c7",
}
MELLANOX, MOST_PODS = "15b3", 64  # the vendor of ConnectX cards, and how many pods may share one


def policies(groups: Sequence[PodGroupPlan]) -> Iterator[Manifest]:
    """What the network operator is to run: the plug-in by which pods share RDMA cards, and no driver.

    Source: Network Operator 26.4, its API mellanox.com/v1alpha1 and "RDMA shared device plugin". The driver is the
    node's own: a new one would drain nodes that train.
    """
    names = sorted({each for group in groups for each in group.resources if each.startswith(SHARED)})
    if not names:
        return
    offers = [
        {
            "resourceName": name.removeprefix(SHARED),
            "rdmaHcaMax": MOST_PODS,
            "selectors": {"vendors": [MELLANOX], "drivers": ["mlx5_core"]},
        }
        for name in names
    ]
    plugin = RDMA_PLUGIN | {"config": json.dumps({"configList": offers})}
    body = of("mellanox.com/v1alpha1", "NicClusterPolicy", "nic-cluster-policy")
    yield Manifest(body=body | {"spec": {"rdmaSharedDevicePlugin": plugin}}, chart=NETWORK_OPERATOR.name)


def unknown_values(chart: ChartPlan) -> list[str]:
    """The values of a chart that it does not know, as dotted keys."""
    return sorted(set(_dotted(chart.values)) - KEYS[chart.name])


def _dotted(values: Mapping[str, Any], above: str = "") -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _dotted(value, f"{above}{key}.")
        else:
            yield above + key
