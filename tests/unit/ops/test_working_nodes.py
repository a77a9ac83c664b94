"""Which nodes of a cluster a job runs on."""

from __future__ import annotations

from infra.handover import Access, Environment, Group, Handover, Node, Store
from ops.train import working


def cluster(*nodes: str, **gpus: int) -> Handover:
    """Nodes in the groups of these names; how many GPUs a node of each group has."""
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
        store=Store(host="control", address="127.0.0.1"),
        environment=Environment(python="/p"),
    )


def at_work(told: Handover) -> list[str]:
    return [node.name for node in working(told).nodes]


def test_a_head_without_gpus_is_no_rank() -> None:
    assert at_work(cluster("head", "trainer", "trainer", head=0, trainer=8)) == ["node-1", "node-2"]


def test_where_no_group_has_gpus_all_nodes_are_ranks() -> None:
    assert at_work(cluster("node", "node", node=0)) == ["node-0", "node-1"]


def test_a_head_does_not_stand_in_for_workers_that_are_not_there() -> None:
    assert at_work(cluster("head", head=0, trainer=8)) == []
