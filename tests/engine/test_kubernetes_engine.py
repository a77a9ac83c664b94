"""A tenant of a real Kubernetes API server, through the real engine: made, left alone, refreshed, worked in, removed.

One control plane and one stack serve the whole file; the tests follow their life in order.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import pytest
from engine_runner import EngineRunner, until
from kubernetes_cluster import control_plane
from kubernetes_cluster.api import RefusedError
from kubernetes_cluster.planted import PLANTED, planted
from kubernetes_life import RESULT, STACK, STEP, EventError, Life, applied, living, tell_all_but

from infra.clouds.kubernetes.plan import jobs
from infra.graph import render
from ops.clouds import base
from ops.clouds.kubernetes.jobs import KINDS
from ops.commands import status
from ops.console.phases import Phase
from ops.errors import CommandError
from ops.project import Project

pytestmark = [
    pytest.mark.skipif(
        control_plane.programs() is None, reason="no control plane was built: `python -m tools.setup --tests`, with Go"
    ),
    pytest.mark.filterwarnings("ignore:Unverified HTTPS request"),  # of a certificate made on loopback
]
NOW = "2026-11-22T12:00:00Z"


@pytest.fixture(scope="module")
def life(pulumi: EngineRunner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    with living(pulumi, tmp_path_factory.mktemp("kubernetes")) as one:
        yield one


@pytest.mark.drill
def test_a_preview_shows_every_object_and_makes_none(life: Life) -> None:
    shown = life.pulumi("preview", "--stack", STACK).stdout

    assert f"+ {len(render(life.pulumi.root, STACK).nodes)} to create" in shown
    assert life.cluster.api.find("v1", "Namespace", "research", None) is None


def test_up_makes_every_object_and_the_server_refuses_none(life: Life) -> None:
    life.pulumi.up(STACK)

    api = life.cluster.api
    labels = api.find("v1", "Namespace", "research", None)["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "baseline"
    queue = api.find("kueue.x-k8s.io/v1beta2", "ClusterQueue", "research", None)
    quotas = {
        each["name"]: each["nominalQuota"] for each in queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"]
    }
    assert quotas == {"nvidia.com/gpu": "32", "vpc.amazonaws.com/efa": "16", "hugepages-2Mi": "20480Mi"}
    runtime = api.find("trainer.kubeflow.org/v1alpha1", "TrainingRuntime", "gpufleet-torch", "research")
    assert runtime["spec"]["template"]["spec"]["failurePolicy"]["maxRestarts"] == 3


def test_a_refresh_and_a_second_up_change_nothing(life: Life) -> None:
    assert "unchanged" in life.pulumi.up(STACK, "--refresh", "--expect-no-changes").stdout


def test_status_tells_the_clusters_nodes_and_that_their_price_is_unknown(life: Life) -> None:
    told = status.status(Project(life.pulumi.root), STACK)

    assert [(node["name"], node["state"]) for node in told["nodes"]] == [(f"gpu-{i}", "ready") for i in range(4)]
    assert "unknown: the cluster is billed elsewhere" in status.text(told)


def test_charts_that_another_tenant_has_installed_are_not_installed_again(life: Life) -> None:
    life.describe(tenant="vision")

    answer = life.gpufleet("up", STACK)

    assert answer.returncode == 1
    assert "cluster.components.install: tenant research has installed the charts in this cluster" in answer.stderr
    assert life.cluster.api.find("v1", "Namespace", "vision", None) is None
    life.describe(tenant="vision", components={"driver": "image", "device_plugin": "cluster", "install": False})
    assert base.of(Project(life.pulumi.root), life.plan).findings() == ()


def test_a_job_is_submitted_scheduled_followed_and_fetched(life: Life) -> None:
    life.describe(form="job")
    life.cluster.kubelet.lines["smoke-1-0"] = [
        "warming up",
        json.dumps(STEP),
        json.dumps(RESULT),
    ]

    answer = life.gpufleet("train", "smoke", "--stack", STACK, "--json")

    assert answer.returncode == 0, answer.stderr
    run = life.pulumi.root / ".gpufleet" / "runs" / STACK / "smoke-1"
    assert json.loads((run / "result.json").read_text())["steps"] == 4
    api = life.cluster.api
    until(lambda: api.find("batch/v1", "Job", "smoke-1", "research")["status"].get("succeeded") == 4)
    pods = api.call("GET", "/api/v1/namespaces/research/pods")["items"]
    assert {pod["spec"]["nodeName"] for pod in pods} <= {"gpu-0", "gpu-1", "gpu-2", "gpu-3"}
    assert len({pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] for pod in pods}) == 4


def test_a_job_that_ended_before_it_had_finished_is_trained_again(life: Life) -> None:
    life.cluster.kubelet.lines["smoke-2-0"] = [json.dumps({**RESULT, "finished": False}), "asked to leave"]
    first = life.gpufleet("train", "smoke", "--stack", STACK)
    assert (first.returncode, "smoke-2 ended without a result" in first.stderr) == (1, True)
    life.cluster.kubelet.lines["smoke-2-0"] = [json.dumps(RESULT)]

    again = life.gpufleet("train", "smoke", "--stack", STACK, "--set", "seed=2", "--json")

    assert again.returncode == 0, again.stderr
    assert (life.pulumi.root / ".gpufleet" / "runs" / STACK / "smoke-2" / "result.json").is_file()


@pytest.mark.parametrize("form", ["jobset", "trainjob"])
def test_a_failed_set_is_gone_before_it_is_submitted_again(life: Life, form: Literal["jobset", "trainjob"]) -> None:
    runner = life.runner(form=form)
    runner.start(lambda _: None)
    kind, api = KINDS[form], life.cluster.api
    failed = {"type": "Failed", "status": "True", "reason": "x", "message": "x", "lastTransitionTime": NOW}
    name = {"name": "late-1", "namespace": "research"}
    body = {"apiVersion": kind[0], "kind": kind[1], "metadata": name, "status": {"conditions": [failed]}}
    api.apply(body, part="status")

    runner.prepare(lambda _: None)

    assert api.find(*kind, "late-1", "research") is None


@pytest.fixture(scope="module")
def objects(life: Life) -> dict[str, dict[str, Any]]:
    """One object of each kind that is applied, by its kind: the plan's, and those of every form of a job."""
    life.describe()
    return applied(life.plan)


@pytest.mark.parametrize("kind", ["Job", "JobSet", "TrainJob"])
def test_every_form_of_a_job_is_taken_by_the_server(life: Life, objects: dict[str, dict[str, Any]], kind: str) -> None:
    life.cluster.api.apply(objects[kind], dry=True)


def test_a_pod_of_the_hosts_network_is_refused_in_the_tenants_namespace(
    life: Life, objects: dict[str, dict[str, Any]]
) -> None:
    """No network policy is about such a pod, and the metadata of its node is no hop away."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "own", "namespace": "research"}}
    spec = {**objects["Job"]["spec"]["template"]["spec"], "hostNetwork": True}

    with pytest.raises(
        RefusedError, match=r'violates PodSecurity "baseline:latest": host namespaces \(hostNetwork=true\)'
    ):
        life.cluster.api.apply({**pod, "spec": spec}, dry=True)


def test_a_pod_with_its_network_check_is_taken_where_pods_are_restricted(
    life: Life, objects: dict[str, dict[str, Any]]
) -> None:
    """All that the restricted standard asks beside is an image that does not run as root."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "restricted", "labels": labels}}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "trainer", "namespace": "restricted"}}
    spec = copy.deepcopy(objects["Job"]["spec"]["template"]["spec"])
    spec["securityContext"]["runAsNonRoot"] = True
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "own", "namespace": "restricted"}, "spec": spec}
    for body in (space, account):
        life.cluster.api.apply(body)

    life.cluster.api.apply(pod, dry=True)

    assert spec["initContainers"][0]["name"] == jobs.CHECK_CONTAINER


def test_a_job_whose_network_check_fails_says_what_a_pod_reaches(life: Life) -> None:
    runner = life.runner(labels={"kubernetes.io/hostname": "none"})  # whose pods nobody but this test touches
    runner.start(lambda _: None)
    api = life.cluster.api

    def of_rank_zero() -> list[str]:
        pods = api.call("GET", "/api/v1/namespaces/research/pods")["items"]
        return [pod["metadata"]["name"] for pod in pods if pod["metadata"]["name"].startswith("late-1-0-")]

    until(of_rank_zero)
    (pod,) = of_rank_zero()
    ended = {"exitCode": 1, "message": "network check: this pod reaches the API server\n", "reason": "Error"}
    check = {"name": jobs.CHECK_CONTAINER, "image": "", "imageID": "", "ready": False, "restartCount": 0}
    status = {"phase": "Failed", "initContainerStatuses": [{**check, "state": {"terminated": ended}}]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod, "namespace": "research"}, "status": status}
    api.apply(body, part="status")

    with pytest.raises(EventError, match=rf"^{pod}: network check: this pod reaches the API server$"):
        runner.follow(tell_all_but("no pod of rank 0 yet"))

    runner.stop()
    runner.prepare(lambda _: None)


@pytest.mark.parametrize("case", PLANTED)
def test_a_planted_mistake_is_refused_in_a_line_that_names_it(
    life: Life, objects: dict[str, dict[str, Any]], case: str
) -> None:
    with pytest.raises(RefusedError) as caught:
        life.cluster.api.apply(planted(objects, case), dry=True)

    assert PLANTED[case][2].lower() in str(caught.value).lower()
    assert "\n" not in str(caught.value)


def test_a_refused_job_is_one_line_of_the_servers_own(life: Life) -> None:
    with pytest.raises(CommandError, match=r'^ConfigMap late-1: namespaces "nowhere" not found$'):
        life.runner(namespace="nowhere").start(lambda _: None)


def test_a_job_that_is_not_over_is_left_alone(life: Life) -> None:
    runner = life.runner(labels={"kubernetes.io/hostname": "none"})
    runner.start(lambda _: None)

    with pytest.raises(
        CommandError, match=r"^job late-1 in research is not over yet: `kubectl .* delete job late-1` deletes it"
    ):
        runner.prepare(lambda _: None)

    runner.stop()
    runner.prepare(lambda _: None)
    runner.stop()  # of one that is gone already nothing is said


def test_a_job_of_another_computer_is_left_alone(life: Life) -> None:
    runner = life.runner(name="smoke-1", resumed=False)

    with pytest.raises(CommandError, match=r"^job smoke-1 in research was not started by this computer: "):
        runner.prepare(lambda _: None)


def test_a_job_that_no_node_takes_says_what_the_scheduler_says(life: Life) -> None:
    runner = life.runner(labels={"kubernetes.io/hostname": "none"})
    runner.start(lambda _: None)

    with pytest.raises(
        EventError, match=r"^late-1-\d-\w+: 0/4 nodes are available: 4 node\(s\) didn't match Pod's node"
    ):
        runner.follow(tell_all_but("no pod of rank 0 yet"))

    runner.stop()


def test_a_job_whose_pods_are_refused_says_why(life: Life) -> None:
    life.cluster.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bare"}})
    runner = life.runner(namespace="bare")
    runner.start(lambda _: None)

    with pytest.raises(EventError, match=r'late-1: .*serviceaccount "trainer" not found$'):
        runner.follow(tell_all_but("no pod of rank 0 yet"))


def test_a_job_that_is_taken_away_ends_the_waiting(life: Life) -> None:
    with pytest.raises(CommandError, match=r'^late-1: jobs.batch "late-1" not found$'):
        life.runner().follow(lambda _: None)


def test_a_namespace_that_no_state_knows_is_told_and_left_alone(life: Life) -> None:
    labels = {"gpufleet.io/tenant": "lost"}
    life.cluster.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lost", "labels": labels}})
    project, lost = Project(life.pulumi.root), replace(life.plan, tenant=replace(life.plan.tenant, namespace="lost"))
    state = json.loads(life.pulumi("stack", "export", "--stack", STACK).stdout)
    known, unknown = base.of(project, life.plan), base.of(project, lost)

    (orphan,) = unknown.orphans(state)

    assert re.fullmatch("namespace lost: `kubectl .+ delete namespace lost` deletes it with everything in it", orphan)
    assert unknown.clear(state, Phase("sweep")) == known.orphans(state) == []
    life.cluster.api.call("DELETE", "/api/v1/namespaces/lost")  # on its way out, and told no more
    assert unknown.orphans(state) == []


def test_destroy_leaves_nothing_of_the_tenant(life: Life) -> None:
    api = life.cluster.api
    for name in ("smoke-1", "smoke-2"):
        api.delete("batch/v1", "Job", name, "research")  # a claim stays as long as a pod uses it
    until(lambda: not api.call("GET", "/api/v1/namespaces/research/pods")["items"])

    life.pulumi.destroy(STACK)

    assert api.find("kueue.x-k8s.io/v1beta2", "ClusterQueue", "research", None) is None
    assert api.find("scheduling.k8s.io/v1", "PriorityClass", "research.production", None) is None
    space = api.find("v1", "Namespace", "research", None)
    assert space is None or space["status"]["phase"] == "Terminating"
