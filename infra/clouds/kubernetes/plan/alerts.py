"""What is watched of a tenant's GPUs, and the scaler of what it serves.

Sources: dcgm-exporter, its default counters (there is no FB_TOTAL; XID_ERRORS is the last code and never resets);
NVIDIA, "XID Errors" (which codes are fatal to a GPU); Kubernetes, "Horizontal Pod Autoscaling"; KEDA, "Prometheus" and
"ScaledObject specification".
"""

from __future__ import annotations

from collections.abc import Sequence

from infra.clouds.kubernetes.plan.model import Manifest, Object, PodGroupPlan
from infra.clouds.kubernetes.plan.tenant import of
from infra.clouds.kubernetes.spec.cluster import Serving

CHART = "kube-prometheus-stack"
FATAL_XIDS = (48, 63, 64, 74, 79, 94, 95, 119, 120)  # 13, 31, 43 and 45 are a program's own faults
EACH = "count by (Hostname) (DCGM_FI_DEV_GPU_TEMP)"
TARGET_PERCENT = 85
CALM_SECONDS = 600  # loading a model takes minutes: no scaling down for every breath
PROMETHEUS = "http://prometheus-operated.monitoring:9090"


def alerts(name: str, groups: Sequence[PodGroupPlan]) -> Manifest:
    """A lost GPU is a series that vanishes, so their number is watched, and the exporter itself.

    The number is the cluster's: other tenants' GPUs may stand in for ours, so a node is held against itself, too.
    """
    gpus = sum(group.count * group.gpus_per_node for group in groups)
    fatal = " or ".join(f"(DCGM_FI_DEV_XID_ERRORS == {code})" for code in FATAL_XIDS)
    own_pods = f'{{namespace="{name}"}}'
    rules = [
        _alert("GpuMissing", f"count(DCGM_FI_DEV_GPU_TEMP) < {gpus}", "5m", f"fewer than {gpus} GPUs answer"),
        _alert(
            "GpuLost", f"{EACH} < max_over_time({EACH}[1d:1m])", "5m", "a node has fewer GPUs than it had within a day"
        ),
        _alert("GpuExporterAbsent", "absent(DCGM_FI_DEV_GPU_TEMP)", "5m", "no exporter tells of any GPU"),
        _alert("GpuFatalXid", f"changes(DCGM_FI_DEV_XID_ERRORS[5m]) > 0 and ({fatal})", "0m", "a GPU had a fatal Xid"),
        _alert("GpuHot", "DCGM_FI_DEV_GPU_TEMP > 85", "5m", "a GPU is above 85 °C"),
        _alert("GpuMemoryHot", "DCGM_FI_DEV_MEMORY_TEMP > 95", "5m", "memory of a GPU is above 95 °C"),
        _alert("GpuRowRemapFailed", "DCGM_FI_DEV_ROW_REMAP_FAILURE > 0", "0m", "a GPU has no spare rows left"),
        _alert(
            "GpuIdle",
            f"avg by (pod) (DCGM_FI_PROF_GR_ENGINE_ACTIVE{own_pods}) < 0.05",
            "30m",
            "a pod holds a GPU and does not use it",
        ),
    ]
    body = of("monitoring.coreos.com/v1", "PrometheusRule", "gpus", name) | {
        "spec": {"groups": [{"name": "gpufleet", "rules": rules}]}
    }
    return Manifest(body=body, chart=CHART)


def _alert(name: str, expression: str, lasting: str, summary: str) -> Object:
    return {
        "alert": name,
        "expr": expression,
        "for": lasting,
        "labels": {"severity": "critical" if lasting == "0m" else "warning"},
        "annotations": {"summary": summary},
    }


def scaler(name: str, serving: Serving) -> Manifest:
    """By how busy the GPUs' engines are (GPU_UTIL is 100 with one small kernel). Training is never scaled so.

    By KEDA, which asks Prometheus itself: the built-in scaler knows no series of a GPU without an adapter's API.
    """
    busy = f'avg(DCGM_FI_PROF_GR_ENGINE_ACTIVE{{namespace="{name}",pod=~"{serving.deployment}-.*"}}) * 100'
    trigger = {"serverAddress": PROMETHEUS, "query": busy, "threshold": str(TARGET_PERCENT)}
    calm = {"scaleDown": {"stabilizationWindowSeconds": CALM_SECONDS}}  # `cooldownPeriod` is about the last pod alone
    spec = {
        "scaleTargetRef": {"name": serving.deployment},
        "minReplicaCount": serving.min,
        "maxReplicaCount": serving.max,
        "advanced": {"horizontalPodAutoscalerConfig": {"behavior": calm}},
        "triggers": [{"type": "prometheus", "metricType": "Value", "metadata": trigger}],
    }
    body = of("keda.sh/v1alpha1", "ScaledObject", serving.deployment, name)
    return Manifest(body=body | {"spec": spec}, chart="keda")
