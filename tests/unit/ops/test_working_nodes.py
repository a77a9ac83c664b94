"""Which nodes of a cluster a job runs on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from infra.handover import Access, Environment, Group, Handover, Kubernetes, Node, Store
from ops import stack as stacks
from ops.clouds.base import Discovered
from ops.commands.train import train, working
from ops.errors import CommandError
from ops.jobs import rendezvous
from ops.project import Project

REPOSITORY = Path(__file__).resolve().parents[3]


def cluster(*nodes: str, store: str = "control", **gpus: int) -> Handover:
    """Nodes in the groups of these names; how many GPUs a node of each group has; which group keeps the store."""
    return Handover(
        stack="x",
        cloud="aws",
        region="us-east-1",
        access=Access(user="ubuntu", key_file="/k", known_hosts_file="/h"),
        nodes=tuple(
            Node(name=f"node-{i}", group=group, address=f"10.0.0.{i}", port=22, host_key="ssh-ed25519 A", prefix="/")
            for i, group in enumerate(nodes)
        ),
        groups=tuple(
            Group(name=name, count=nodes.count(name), gpu="A100" if many else None, gpus_per_node=many, fabric="none")
            for name, many in gpus.items()
        ),
        storage=(),
        store=Store(host=store, address="10.0.0.9", port=29_400),
        environment=Environment(python="/p"),
    )


def at_work(handover: Handover, group: str | None = None) -> list[str]:
    return [node.name for node in working(handover, group).nodes]


def test_a_head_without_gpus_is_no_rank() -> None:
    assert at_work(cluster("head", "trainer", "trainer", head=0, trainer=8)) == ["node-1", "node-2"]


def test_where_no_group_has_gpus_all_nodes_are_ranks() -> None:
    assert at_work(cluster("node", "node", node=0)) == ["node-0", "node-1"]


def test_the_keeper_of_the_store_is_no_rank_where_others_are() -> None:
    assert at_work(cluster("head", "node", store="head", head=0, node=0)) == ["node-1"]
    assert at_work(cluster("node", "node", store="node", node=0)) == ["node-0", "node-1"]


def test_a_job_of_one_node_needs_no_store() -> None:
    with rendezvous.store(cluster("dev", store="", dev=1), members=1, key="") as address:
        assert address == ""


def test_a_job_runs_on_the_group_that_is_named() -> None:
    handover = cluster("head", "trainer", "serve", head=0, trainer=8, serve=1)

    assert at_work(handover, "trainer") == ["node-1"]
    for group, says in ((None, "--group, one of serve, trainer"), ("trainee", "has no group trainee; it has head")):
        with pytest.raises(CommandError, match=says):
            at_work(handover, group)


@pytest.mark.parametrize(("store", "says"), [("", "do not reach each other"), ("head", "no node of head is up")])
def test_a_store_that_nobody_can_keep_is_told(store: str, says: str) -> None:
    with (
        pytest.raises(CommandError, match=says),
        rendezvous.store(cluster("a", "a", store=store, a=1), members=2, key=""),
    ):
        pass


def test_a_head_does_not_stand_in_for_workers_that_are_not_there() -> None:
    assert at_work(cluster("head", head=0, trainer=8)) == []


def test_a_cluster_of_kubernetes_runs_jobs_on_its_first_group_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(REPOSITORY / "Pulumi.yaml", tmp_path)
    (tmp_path / "stacks").mkdir()
    shutil.copy(REPOSITORY / "stacks" / "Pulumi.k8s-a100.yaml", tmp_path / "stacks")
    handover = cluster().model_copy(update={"kubernetes": Kubernetes(cluster="a100")})
    monkeypatch.setattr(stacks, "discovered", lambda *_: Discovered(handover, ()))

    with pytest.raises(CommandError, match="--group serve: jobs run on the first group of `nodes`, trainer"):
        train(Project(tmp_path), "k8s-a100", "mnist", [], print, "serve")
