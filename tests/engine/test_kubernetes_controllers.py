"""A TrainJob and a JobSet under their real controllers: submitted, made into Jobs, scheduled, followed, fetched.

One control plane, one stack and both controllers serve the whole file; the pods are played, their containers never run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from engine_runner import EngineRunner, until
from kubernetes_cluster import control_plane, controllers
from kubernetes_life import RESULT, STACK, STEP, Life, living

pytestmark = [
    pytest.mark.drill,
    pytest.mark.skipif(
        None in (control_plane.programs(), control_plane.programs("controllers")),
        reason="no controllers were built: `python -m tools.setup --tests --controllers`, with Go",
    ),
    pytest.mark.filterwarnings("ignore:Unverified HTTPS request"),  # of a certificate made on loopback
]
JOBSET, TRAINJOB = ("jobset.x-k8s.io/v1alpha2", "JobSet"), ("trainer.kubeflow.org/v1alpha1", "TrainJob")


@pytest.fixture(scope="module")
def life(pulumi: EngineRunner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    with living(pulumi, tmp_path_factory.mktemp("controllers")) as one, controllers.running(one.cluster):
        one.pulumi.up(STACK)
        yield one


def trained(life: Life, run: str, form: str) -> dict[str, Any]:
    """The result of the smoke job in this form, as `gpufleet train` brings it; its pods are those of a set."""
    life.describe(form=form)
    life.cluster.kubelet.lines[f"{run}-node-0-0"] = ["warming up", json.dumps(STEP), json.dumps(RESULT)]

    answer = life.gpufleet("train", "smoke", "--stack", STACK, "--json")

    assert answer.returncode == 0, answer.stderr
    return json.loads((life.pulumi.root / ".gpufleet" / "runs" / STACK / run / "result.json").read_text())


def conditions(life: Life, kind: tuple[str, str], name: str) -> set[str]:
    found = life.cluster.api.find(*kind, name, "research")
    return {each["type"] for each in found.get("status", {}).get("conditions", []) if each["status"] == "True"}


def pods(life: Life, name: str) -> list[dict[str, Any]]:
    found = life.cluster.api.call("GET", "/api/v1/namespaces/research/pods")["items"]
    return [pod for pod in found if pod["metadata"]["labels"].get("gpufleet.io/job") == name]


def placed(life: Life, name: str) -> set[int]:
    """The indexes whose pod was put on a node; played pods end at once, and leave their node to the next one."""
    index = "batch.kubernetes.io/job-completion-index"
    return {int(pod["metadata"]["labels"][index]) for pod in pods(life, name) if pod["spec"].get("nodeName")}


def test_a_trainjob_becomes_a_jobset_a_job_and_four_pods_and_its_result_is_fetched(life: Life) -> None:
    assert trained(life, "smoke-1", "trainjob")["steps"] == 4

    api = life.cluster.api
    owner = api.find(*JOBSET, "smoke-1", "research")["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"]) == ("TrainJob", "smoke-1")
    until(lambda: api.find("batch/v1", "Job", "smoke-1-node-0", "research")["status"].get("succeeded") == 4)
    until(lambda: "Complete" in conditions(life, TRAINJOB, "smoke-1"))
    assert placed(life, "smoke-1") == {0, 1, 2, 3}


def test_the_pods_of_a_trainjob_are_what_the_plan_says(life: Life) -> None:
    """Trainer joins the runtime, the job and its patches: each of them could lose what the others say."""
    pod = pods(life, "smoke-1")[0]["spec"]
    (container,) = pod["containers"]
    variables = {each["name"]: each.get("value") for each in container["env"]}

    assert (variables["PET_NNODES"], variables["STORE"]) == ("4", "smoke-1-node-0-0.smoke-1")
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "8"
    assert {"job", "data", "shared-memory"} <= {each["name"] for each in pod["volumes"]}
    assert container["command"][:2] == ["/bin/sh", "-c"]
    assert pod["terminationGracePeriodSeconds"] == life.plan.groups[0].grace_seconds
    assert life.cluster.api.find(*JOBSET, "smoke-1", "research")["spec"]["failurePolicy"]["maxRestarts"] == 3


def test_a_jobset_is_followed_to_its_result_too(life: Life) -> None:
    assert trained(life, "smoke-2", "jobset")["steps"] == 4

    until(lambda: "Completed" in conditions(life, JOBSET, "smoke-2"))
    assert placed(life, "smoke-2") == {0, 1, 2, 3}
