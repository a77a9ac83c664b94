"""A training job as an object of Kubernetes: a TrainJob with its runtime, a JobSet, or a plain Indexed Job.

Sources: Kubeflow Trainer 2.3, API trainer.kubeflow.org/v1alpha1 (labels and names that a runtime must have); JobSet
0.12, API v1alpha2 (failure policy, host names); Kubernetes, "Handling retriable and non-retriable pod failures with Pod
failure policy" (evictions, preemptions and lost nodes carry the condition DisruptionTarget).
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from infra.clouds.kubernetes.plan.identity import PodIdentity
from infra.clouds.kubernetes.plan.model import Manifest, Object, PodGroupPlan, TenantPlan
from infra.clouds.kubernetes.plan.queues import QUEUE, tolerations
from infra.clouds.kubernetes.plan.tenant import JOB_LABEL, PRODUCTION, SERVICE_ACCOUNT, of, qualified
from infra.plan.model import StoragePlan

RUNTIME = "gpufleet-torch"
STORE_PORT = 29400
STORE_KEY = "store"  # in the job's secret
RESTARTS = 3
SHARED_MEMORY = "64Gi"  # a data loader's batches go through /dev/shm, which is 64 MiB unless told (containerd)
JOB_FOLDER = "/etc/gpufleet"
NETWORK_CHECK = Path(__file__).with_name("network_check.py").read_text()
POLICY_SECONDS = 60  # from a pod's start until its network policies are enforced, at most
CHECK_CONTAINER = "network-check"
UNPRIVILEGED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}

# The store runs beside rank 0 for want of a machine outside; when that pod is lost, all start again from a checkpoint.
LAUNCH = """\
set -eu
[ "$RANK_GROUP" != 0 ] || sleep infinity | python -m training store --bind "$POD_IP" --port {port} > /dev/null &
until getent hosts "$STORE" > /dev/null; do sleep 1; done
exec python -m training launch {folder}/job.toml --events --nnodes {nodes} --nproc {gpus} --store "$STORE:{port}" "$@"
"""


def runtime(
    tenant: str,
    group: PodGroupPlan,
    storage: Sequence[StoragePlan],
    image: str,
    identity: PodIdentity | None = None,
) -> Manifest:
    """The tenant's own runtime: the stock one never restarts a failed job, and the chart installs none."""
    replicated = {
        "name": "node",
        "template": _job(tenant, group, storage, image, "runtime", labels=STEP, identity=identity),
    }
    spec = {
        "mlPolicy": {"numNodes": group.count, "torch": {}},
        "template": {"spec": {"failurePolicy": FAILURE, "replicatedJobs": [replicated]}},
    }
    body = of("trainer.kubeflow.org/v1alpha1", "TrainingRuntime", RUNTIME, tenant) | {"spec": spec}
    body["metadata"] = {**body["metadata"], "labels": {"trainer.kubeflow.org/framework": "torch"}}  # pyright: ignore[reportGeneralTypeIssues]
    return Manifest(body=body, chart="trainer")


def objects(
    tenant: TenantPlan,
    group: PodGroupPlan,
    storage: Sequence[StoragePlan],
    name: str,
    text: str,
    arguments: Sequence[str],
    key: str,
) -> Iterator[Object]:
    """All of a job: its file, the key of its rendezvous store, the name its pods are found by, and the job itself.

    arguments: of the launcher, in which the kubelet would put variables for $(NAME), but for a doubled $ one (API of
    Kubernetes, Container, `command`).
    """
    space, arguments = tenant.namespace, [argument.replace("$", "$$") for argument in arguments]
    pods = partial(_job, space, group, storage, tenant.image, name, arguments, identity=tenant.identity)
    yield of("v1", "ConfigMap", name, space) | {"data": {"job.toml": text}}
    yield of("v1", "Secret", name, space) | {"data": {STORE_KEY: b64encode(key.encode()).decode()}}
    match tenant.form:
        case "job":
            service = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {JOB_LABEL: name}}
            yield of("v1", "Service", name, space) | {"spec": service}
            template = pods(store=f"{name}-0.{name}")
            template["spec"]["template"]["spec"]["subdomain"] = name
            yield _queued(of("batch/v1", "Job", name, space)) | {"spec": template["spec"]}
        case "jobset":
            template = pods(store=f"{name}-node-0-0.{name}")
            spec = {"failurePolicy": FAILURE, "replicatedJobs": [{"name": "node", "replicas": 1, "template": template}]}
            yield _queued(of("jobset.x-k8s.io/v1alpha2", "JobSet", name, space)) | {"spec": spec}
        case "trainjob":
            container = _container(group, storage, tenant.image, name, arguments, store=f"{name}-node-0-0.{name}")
            trainer = {key: container[key] for key in ("image", "command", "env")} | {
                "numNodes": group.count,
                "numProcPerNode": group.gpus_per_node,
                "resourcesPerNode": container["resources"],
            }
            mounted = {"name": "job", "configMap": {"name": name}}
            pod = {"template": {"metadata": {"labels": {JOB_LABEL: name}}, "spec": {"volumes": [mounted]}}}
            patched = {"replicatedJobs": [{"name": "node", "template": {"spec": pod}}]}
            patches = [{"manager": "gpufleet.io/train", "trainingRuntimeSpec": {"template": {"spec": patched}}}]
            spec = {
                "runtimeRef": {"name": RUNTIME, "kind": "TrainingRuntime"},
                "trainer": trainer,
                "runtimePatches": patches,
            }
            yield _queued(of("trainer.kubeflow.org/v1alpha1", "TrainJob", name, space)) | {"spec": spec}


STEP = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
FAILURE = {
    "maxRestarts": RESTARTS,
    "restartStrategy": "BlockingRecreate",  # old ranks are gone before new ones start
    "rules": [
        {
            "name": "evicted",  # spot, preemption and lost nodes do not eat the budget of real failures
            "action": "RestartJobSetAndIgnoreMaxRestarts",
            "onJobFailureReasons": ["PodFailurePolicy"],
        }
    ],
}
EVICTED = {"rules": [{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]}
REPLACED = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]}


def _queued(body: dict[str, Any]) -> dict[str, Any]:
    """Without the queue's name a job would run beside the queue and its share."""
    metadata = body["metadata"]
    priority = qualified(metadata["namespace"], PRODUCTION)
    labels = {"kueue.x-k8s.io/queue-name": QUEUE, "kueue.x-k8s.io/priority-class": priority}
    return {**body, "metadata": {**metadata, "labels": labels}}


def _job(
    tenant: str,
    group: PodGroupPlan,
    storage: Sequence[StoragePlan],
    image: str,
    name: str,
    arguments: Sequence[str] = (),
    *,
    store: str = "",
    labels: dict[str, str] | None = None,
    identity: PodIdentity | None = None,
) -> dict[str, Any]:
    """One pod a node, all of one step. A plain job replaces an evicted pod; of a set, all pods start again."""
    plain = bool(store) and "-node-" not in store
    pods = {
        "metadata": {
            "labels": {JOB_LABEL: name},
            "annotations": {"kueue.x-k8s.io/podset-preferred-topology": group.levels[0]},
        },
        "spec": {
            "restartPolicy": "Never",
            "serviceAccountName": SERVICE_ACCOUNT,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "priorityClassName": qualified(tenant, PRODUCTION),
            "terminationGracePeriodSeconds": group.grace_seconds,
            "nodeSelector": dict(group.labels),
            "tolerations": tolerations(group),
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "initContainers": [_network_check(image)],
            "containers": [_container(group, storage, image, name, arguments, store=store, identity=identity)],
            "volumes": [
                *_volumes(storage),
                *([{"name": "job", "configMap": {"name": name}}] if store else []),
                *([identity.volume] if identity else []),
            ],
        },
    }
    spec = {
        "completionMode": "Indexed",
        "completions": group.count,
        "parallelism": group.count,
        "backoffLimit": RESTARTS * group.count if plain else 0,
        "podFailurePolicy": REPLACED if plain else EVICTED,
        "template": pods,
    }
    return {**({"metadata": {"labels": labels}} if labels else {}), "spec": spec}


def _network_check(image: str) -> dict[str, Any]:
    """No job begins in a namespace whose network policies nobody enforces; why it does not is in the pod's status."""
    return {
        "name": CHECK_CONTAINER,
        "image": image,
        "command": ["python", "-I", "-c", NETWORK_CHECK, str(POLICY_SECONDS)],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
        "securityContext": UNPRIVILEGED,
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _container(
    group: PodGroupPlan,
    storage: Sequence[StoragePlan],
    image: str,
    name: str,
    arguments: Sequence[str],
    *,
    store: str,
    identity: PodIdentity | None = None,
) -> dict[str, Any]:
    script = LAUNCH.format(port=STORE_PORT, folder=JOB_FOLDER, nodes=group.count, gpus=group.gpus_per_node)
    index = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
    env = [
        {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "RANK_GROUP", "valueFrom": {"fieldRef": {"fieldPath": index}}},
        {"name": "STORE", "value": store},
        {"name": "GPUFLEET_STORE_KEY", "valueFrom": {"secretKeyRef": {"name": name, "key": STORE_KEY}}},
    ]
    return {
        "name": "node",
        "image": image,
        "command": ["/bin/sh", "-c", script, "launch", *arguments],
        "env": env if store else env[:2],
        **({"envFrom": [identity.environment]} if identity else {}),
        "resources": {"requests": {"cpu": "4", "memory": "32Gi"}, "limits": dict(group.resources)},
        "securityContext": UNPRIVILEGED,
        "volumeMounts": [
            {"name": "shared-memory", "mountPath": "/dev/shm"},
            *({"name": volume.name, "mountPath": volume.mount} for volume in storage),
            {"name": "job", "mountPath": JOB_FOLDER, "readOnly": True},
            *([identity.mount] if identity else []),
        ],
    }


def _volumes(storage: Sequence[StoragePlan]) -> Iterator[Object]:
    yield {"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": SHARED_MEMORY}}
    for volume in storage:
        yield {"name": volume.name, "persistentVolumeClaim": {"claimName": volume.name}}
