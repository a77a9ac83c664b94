"""The stack k8s-a100 on a control plane of its own, whose four nodes are played."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import yaml
from engine_runner import EngineRunner
from kubernetes_cluster import control_plane
from kubernetes_cluster.control_plane import ControlPlane

from infra.clouds.kubernetes.plan import jobs
from infra.clouds.kubernetes.plan.model import KubernetesPlan
from infra.evaluate import decide
from infra.spec import load
from ops.clouds.kubernetes.cloud import connected
from ops.clouds.kubernetes.jobs import KubernetesRunner
from ops.jobs.base import Job
from ops.jobs.runs import Run

REPOSITORY = Path(__file__).resolve().parents[2]
STACK = "k8s"
POOL = {"node.kubernetes.io/instance-type": "p4d.24xlarge", "topology.kubernetes.io/zone": "zone-a"}
HARDWARE = {"nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "4"}
# What rank 0 of the smallest job prints.
STEP = {"event": "step", "step": 4, "steps": 4, "loss": 0.5, "samples_per_second": 10.0}
RESULT = {
    "event": "result",
    "name": "smoke",
    "finished": True,
    "steps": 4,
    "restarts": 0,
    "accuracy": None,
    "seconds": 1.0,
}
FORMS: tuple[Literal["job", "jobset", "trainjob"], ...] = ("job", "jobset", "trainjob")


class EventError(Exception):
    """What a job waits for; ends the waiting."""


def tell_all_but(passing: str) -> Callable[[dict[str, Any]], None]:
    def tell(event: dict[str, Any]) -> None:
        if event["reason"] != passing:
            raise EventError(event["reason"])

    return tell


def applied(plan: KubernetesPlan) -> dict[str, dict[str, Any]]:
    """One object of each kind that is applied, by its kind: the plan's, and those of every form of a job."""
    objects = {manifest.body["kind"]: dict(manifest.body) for manifest in plan.tenant.manifests}
    for form in FORMS:
        tenant = replace(plan.tenant, form=form)
        submitted = jobs.objects(
            tenant, plan.groups[0], plan.storage, f"as-{form}", "steps = 1\n", ["--set", "seed=2"], "key"
        )
        objects |= {body["kind"]: dict(body) for body in submitted}
    return json.loads(json.dumps(objects))


@dataclass(frozen=True)
class Life:
    """The stack on its cluster."""

    pulumi: EngineRunner
    cluster: ControlPlane

    def describe(self, **changed: Any) -> None:
        text = (REPOSITORY / "stacks" / "Pulumi.k8s-a100.yaml").read_text()
        asked: dict[str, Any] = yaml.safe_load(text)["config"]["gpufleet:cluster"]
        asked |= {"kubeconfig": str(self.cluster.kubeconfig), "context": "test", **changed}
        self.pulumi.write(STACK, **asked)

    @property
    def plan(self) -> KubernetesPlan:
        plan = decide(load(self.pulumi.root, STACK))
        assert isinstance(plan, KubernetesPlan)
        return plan

    def runner(
        self,
        namespace: str = "research",
        labels: dict[str, str] = POOL,
        form: Literal["trainjob", "jobset", "job"] = "job",
        name: str = "late-1",
        *,
        resumed: bool = True,
    ) -> KubernetesRunner:
        """Of a job for nodes with these labels."""
        plan = self.plan
        tenant = replace(plan.tenant, form=form, namespace=namespace)
        plan = replace(plan, tenant=tenant, groups=(replace(plan.groups[0], labels=labels),))
        folder = self.pulumi.root / ".gpufleet" / "runs" / STACK / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "place").write_text(f"{name}-0000")
        job = Job(Run(folder), "steps = 1\n", (), resumed, "`gpufleet train`")
        return KubernetesRunner(plan, job, connected(plan))

    def gpufleet(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "ops", *arguments],
            cwd=self.pulumi.root,
            env={**self.pulumi.environment, "PYTHONWARNINGS": "ignore"},  # of a certificate made on loopback
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )


@contextmanager
def living(pulumi: EngineRunner, place: Path) -> Iterator[Life]:
    """place: a folder for the control plane."""
    provider = str(Path(__file__).parent / "kubernetes_cluster" / "bin")
    environment = {**pulumi.environment, "PATH": os.pathsep.join([provider, pulumi.environment["PATH"]])}
    with control_plane.running(place) as cluster:
        for i in range(4):
            cluster.node(f"gpu-{i}", POOL, HARDWARE)
        cluster.volume("shared", 1200)
        made = Life(EngineRunner(pulumi.root, environment), cluster)
        made.describe()
        yield made
