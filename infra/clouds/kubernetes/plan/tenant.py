"""What fences a tenant in: its namespace, its share, who may speak to its pods, and what its pods may do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from infra.clouds.kubernetes.plan.model import Manifest, Object, PodGroupPlan
from infra.plan.model import StoragePlan

GPU = "nvidia.com/gpu"
JOB_LABEL, TENANT_LABEL = "gpufleet.io/job", "gpufleet.io/tenant"
CHARTS_LABEL = "gpufleet.io/charts"  # of the one tenant of a cluster that has installed them
PRODUCTION, DEVELOPMENT = "production", "development"
SERVICE_ACCOUNT = "trainer"
SPARE_PODS = 20  # beside one a node: notebooks, a look into a volume


def tenant(
    name: str, groups: Sequence[PodGroupPlan], volumes: Sequence[tuple[StoragePlan, int, str]], *, installs: bool
) -> Iterator[Manifest]:
    """volumes: each with its size in GiB and its storage class. installs: the cluster's charts are this tenant's."""
    yield Manifest(body=namespace(name, installs=installs))
    yield Manifest(body=of("v1", "ServiceAccount", SERVICE_ACCOUNT, name) | {"automountServiceAccountToken": False})
    yield Manifest(body=of("v1", "ResourceQuota", "share", name) | {"spec": {"hard": _share(groups)}})
    yield Manifest(body=of("v1", "LimitRange", "sizes", name) | {"spec": {"limits": [_SIZES]}})
    yield from (Manifest(body=body) for body in _policies(name))
    yield from (Manifest(body=body) for body in _priorities(name))
    budget = {"maxUnavailable": 0, "selector": {"matchExpressions": [{"key": JOB_LABEL, "operator": "Exists"}]}}
    yield Manifest(body=of("policy/v1", "PodDisruptionBudget", "jobs", name) | {"spec": budget})
    for volume, size_gib, storage_class in volumes:
        claim = {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": f"{size_gib}Gi"}},
        }
        yield Manifest(body=of("v1", "PersistentVolumeClaim", volume.name, name) | {"spec": claim})


def qualified(tenant: str, what: str) -> str:
    """The name of what lies in no namespace, beside that of other tenants: no name of a tenant or group has a dot."""
    return f"{tenant}.{what}"


def of(api: str, kind: str, name: str, namespace: str | None = None) -> dict[str, object]:
    """An object without its spec; its name is fixed, since others say it."""
    inside = {"namespace": namespace} if namespace else {}
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, **inside}}


def namespace(name: str, *, installs: bool) -> Object:
    """Pods are held to the baseline of the pod security standards, and told where they miss the restricted one."""
    body = of("v1", "Namespace", name)
    levels = {"enforce": "baseline", "audit": "restricted", "warn": "restricted"}
    labels = {f"pod-security.kubernetes.io/{mode}": level for mode, level in levels.items()}
    labels |= {TENANT_LABEL: name, **({CHARTS_LABEL: "installed"} if installs else {})}
    return {**body, "metadata": {"name": name, "labels": labels}}


# What a container asks for that says nothing; a default limit would be one for those that ask for more, too.
_SIZES = {
    "type": "Container",
    "defaultRequest": {"cpu": "500m", "memory": "2Gi"},
}


def _share(groups: Sequence[PodGroupPlan]) -> dict[str, str]:
    """All GPUs of the tenant's nodes; nothing of it is reached from outside the cluster."""
    gpus = sum(group.count * group.gpus_per_node for group in groups)
    pods = sum(group.count for group in groups) + SPARE_PODS
    return {f"requests.{GPU}": str(gpus), "pods": str(pods), "services.loadbalancers": "0", "services.nodeports": "0"}


def _policies(name: str) -> Iterator[Object]:
    """Pods speak to each other (rendezvous, NCCL's sockets) and to the cluster's DNS, and to nobody else."""
    api, kind = "networking.k8s.io/v1", "NetworkPolicy"
    both = ["Ingress", "Egress"]
    yield of(api, kind, "default-deny", name) | {"spec": {"podSelector": {}, "policyTypes": both}}
    each_other = [{"podSelector": {}}]
    inside = {"podSelector": {}, "policyTypes": both, "ingress": [{"from": each_other}], "egress": [{"to": each_other}]}
    yield of(api, kind, "each-other", name) | {"spec": inside}
    system = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}
    dns = {"to": [system], "ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]}
    yield of(api, kind, "dns", name) | {"spec": {"podSelector": {}, "policyTypes": ["Egress"], "egress": [dns]}}


def _priorities(name: str) -> Iterator[Object]:
    """The scheduler's: work in progress is never pushed out for a notebook."""
    for work, value, policy in ((PRODUCTION, 100_000, "PreemptLowerPriority"), (DEVELOPMENT, 1_000, "Never")):
        body = of("scheduling.k8s.io/v1", "PriorityClass", qualified(name, work))
        yield body | {"value": value, "preemptionPolicy": policy}
