"""Rules about a tenant of a Kubernetes cluster: what its API would take, and what would then not work."""

from __future__ import annotations

from collections.abc import Iterator

from infra import catalog
from infra.checks.drivers import too_old
from infra.checks.rule import Violation, rule
from infra.clouds.kubernetes.plan.charts import unknown_values
from infra.clouds.kubernetes.plan.model import KubernetesPlan
from infra.clouds.kubernetes.spec.cluster import KubernetesSpec

HOSTNAME = "kubernetes.io/hostname"


@rule("a-slice-trains-alone", KubernetesPlan)
def a_slice_trains_alone(spec: KubernetesSpec, _: KubernetesPlan) -> Iterator[Violation]:
    """NCCL does not join slices of GPUs (NVIDIA MIG User Guide, "Application considerations")."""
    for i, group in enumerate(spec.nodes):
        if group.mig and group.gpus * group.count > 1:
            yield f"cluster.nodes[{i}].mig", "slices of GPUs cannot train together: leave it out, or ask for one"


@rule("a-slice-is-one-of-its-gpu", KubernetesPlan)
def a_slice_is_one_of_its_gpu(spec: KubernetesSpec, _: KubernetesPlan) -> Iterator[Violation]:
    """A GPU can be cut in the ways of its table (infra/catalog/tables/gpus.csv)."""
    for i, group in enumerate(spec.nodes):
        known = [cut.partition("x")[2] for cut in catalog.load().gpu(group.gpu).mig_profiles]
        if group.mig and group.mig not in known:
            message = f"{group.gpu} has no slice {group.mig}; it has {', '.join(known) or 'none'}"
            yield f"cluster.nodes[{i}].mig", message


@rule("hostname-is-the-narrowest-level", KubernetesPlan)
def hostname_is_the_narrowest_level(spec: KubernetesSpec, _: KubernetesPlan) -> Iterator[Violation]:
    """It stands below every topology by itself, and nothing can stand below it (Kueue, Topology)."""
    for i, group in enumerate(spec.nodes):
        if HOSTNAME in group.topology:
            yield f"cluster.nodes[{i}].topology", f"leave {HOSTNAME} out: it is the last level by itself"


@rule("one-owner-of-the-gpus", KubernetesPlan)
def one_owner_of_the_gpus(spec: KubernetesSpec, _: KubernetesPlan) -> Iterator[Violation]:
    """A container toolkit of the operator needs its driver, and a driver without a plug-in shows no GPU to anybody."""
    parts = spec.components
    if parts.driver == "operator" and not parts.install:
        yield "cluster.components.driver", "'operator' needs the operator: `install: true`, or 'image'"
    if parts.device_plugin == "operator" and not parts.install:
        yield "cluster.components.device_plugin", "'operator' needs the operator: `install: true`, or 'cluster'"


@rule("pods-run-the-locked-torch", KubernetesPlan)
def pods_run_the_locked_torch(spec: KubernetesSpec, _: KubernetesPlan) -> Iterator[Violation]:
    """The GPU operator's default driver, 595, and CUDA 13 leave Volta behind (NVIDIA, CUDA release notes)."""
    for i, group in enumerate(spec.nodes):
        if message := too_old(group.gpu):
            yield f"cluster.nodes[{i}].gpu", message


@rule("pods-of-a-job-are-joined", KubernetesPlan, level="warning")
def pods_of_a_job_are_joined(_: KubernetesSpec, plan: KubernetesPlan) -> Iterator[Violation]:
    """Without RDMA, NCCL goes over TCP, silently and many times slower (NCCL User Guide, NCCL_IB_DISABLE)."""
    for i, group in enumerate(plan.groups):
        if group.count > 1 and group.fabric == "tcp":
            yield f"cluster.nodes[{i}].fabric", "is missing: the GPUs of different nodes speak over TCP"


@rule("ranks-share-a-volume", KubernetesPlan)
def ranks_share_a_volume(_: KubernetesSpec, plan: KubernetesPlan) -> Iterator[Violation]:
    """A pod's own files go with it: checkpoints must outlive every pod."""
    if not plan.storage:
        yield "cluster.storage", "is missing: checkpoints need a volume that outlives the pods"


@rule("the-node-takes-its-fabric-whole", KubernetesPlan, level="warning")
def the_node_takes_its_fabric_whole(_: KubernetesSpec, plan: KubernetesPlan) -> Iterator[Violation]:
    """Cards that are shared unevenly by GPUs make the slowest the rule (NVIDIA, GPUDirect RDMA topology)."""
    for i, group in enumerate(plan.groups):
        cards = int(group.resources.get(group.fabric, group.gpus_per_node))
        if max(cards, group.gpus_per_node) % min(cards, group.gpus_per_node):
            yield f"cluster.nodes[{i}].fabric.count", f"{cards} cards do not divide {group.gpus_per_node} GPUs evenly"


@rule("charts-know-their-values", KubernetesPlan)
def charts_know_their_values(_: KubernetesSpec, plan: KubernetesPlan) -> Iterator[Violation]:
    """Helm drops a value that its chart does not know, without a word."""
    for chart in plan.tenant.charts:
        for key in unknown_values(chart):
            yield "cluster.components", f"{chart.name} {chart.version} has no value {key}"
