"""The decision: the same plan for the same file, and all that a cloud needs."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError

import pytest
from projects import Project
from test_mistakes import GOOD_KEY

from infra.clouds.local.plan import LocalPlan
from infra.evaluate import decide

CLUSTER = f"""\
cloud: local
isolation: machine
access: {{public_key: {GOOD_KEY}}}
nodes:
  - {{name: head, count: 1, addresses: [10.213.0.200]}}
  - {{name: trainer, count: 2}}
storage: [{{name: data, kind: folder, mount: /data}}]
"""


def test_a_plan_holds_every_decision(project: Project) -> None:
    plan = decide(project.load(CLUSTER, "rehearsal"))

    assert isinstance(plan, LocalPlan)
    assert (plan.stack, plan.cloud, plan.region, plan.isolation) == ("rehearsal", "local", None, "machine")
    assert (plan.network.cidr, plan.network.gateway) == ("10.213.0.0/24", "10.213.0.1")
    assert plan.access.public_keys == (GOOD_KEY,)
    assert [(node.name, node.group, node.address, node.port) for node in plan.nodes] == [
        ("head-1", "head", "10.213.0.200", 22),
        ("trainer-1", "trainer", "10.213.0.11", 22),
        ("trainer-2", "trainer", "10.213.0.12", 22),
    ]
    assert [(group.name, group.count, group.gpu, group.gpus_per_node, group.fabric) for group in plan.groups] == [
        ("head", 1, None, 0, "tcp"),
        ("trainer", 2, None, 0, "tcp"),
    ]
    assert [(item.name, item.kind, item.mount) for item in plan.storage] == [("data", "folder", "/data")]
    assert plan.findings == ()


def test_processes_reach_this_computer_at_the_loopback_address(project: Project) -> None:
    plan = decide(project.load("cloud: local\nisolation: process\nnodes: [{name: a, count: 1}]"))

    assert plan.network.gateway == "127.0.0.1"
    assert plan.access.public_keys == ()


def test_this_computer_costs_nothing_and_says_so_item_by_item(project: Project) -> None:
    cost = decide(project.load(CLUSTER)).cost

    assert (cost.currency, cost.hourly, cost.hourly_max) == ("USD", 0, 0)
    assert (cost.per_gpu_hour, cost.per_pflop_hour) == (None, None)
    assert [(item.name, item.quantity, item.hourly) for item in cost.items] == [("head", 1, 0), ("trainer", 2, 0)]


def test_the_same_file_is_always_the_same_plan(project: Project) -> None:
    assert decide(project.load(CLUSTER)) == decide(project.load(CLUSTER))


def test_a_plan_is_plain_json_and_cannot_be_changed(project: Project) -> None:
    plan = decide(project.load(CLUSTER))

    assert json.loads(json.dumps(plan.to_json())) == plan.to_json()
    with pytest.raises(FrozenInstanceError):
        plan.stack = "y"  # pyright: ignore[reportAttributeAccessIssue]
