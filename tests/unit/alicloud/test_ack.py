"""A cluster of ACK: which release of Kubernetes a stack file means, and what its node pools cannot do."""

from __future__ import annotations

import json
from ipaddress import ip_network

import pytest
from ack_rule_cases import ACK
from ali_clusters import SYSTEM, Project, cluster, group
from ali_rule_cases import A10, POOL, TWO_ZONES
from rendered import render  # pyright: ignore[reportMissingImports]: conftest.py finds it

from infra.clouds.alicloud.plan.capacity import Spot
from infra.clouds.alicloud.resources.ack import newest
from infra.spec import SpecError

RELEASED = ["1.36.1-aliyun.1", "1.35.9-aliyun.1", "1.35.10-aliyun.1", "1.35.10-aliyun.2"]


@pytest.mark.parametrize(
    ("asked", "meant"), [("1.35", "1.35.10-aliyun.2"), ("1.36", "1.36.1-aliyun.1"), ("1.3", "1.3")]
)
def test_a_minor_version_is_its_newest_release(asked: str, meant: str) -> None:
    assert newest(asked, RELEASED) == meant


@pytest.mark.parametrize(("version", "lives"), [("1.35.2-aliyun.1", True), ("1.34.1-aliyun.1", False)])
def test_a_whole_release_is_taken_while_its_minor_version_lives(ali: Project, version: str, lives: bool) -> None:
    plan = ali.plan(**{**ACK, "ack": f"{{version: '{version}'}}", "nodes": group(SYSTEM, **A10)})

    assert {finding.rule for finding in plan.errors} == (set() if lives else {"ack-version-lives"})


def test_every_vswitch_of_pods_is_one_that_ack_takes(ali: Project) -> None:
    """Also in a small network, and in a zone without nodes."""
    nodes = group(SYSTEM.replace("count: 2", "count: 2, zone: cn-beijing-l"), **A10, zone="cn-beijing-l")
    plan = ali.plan(**{**ACK, **TWO_ZONES, "network": "{cidr: 10.40.0.0/22}", "nodes": nodes})

    assert plan.ack is not None
    assert not plan.errors
    sizes = {each.name: ip_network(each.cidr).prefixlen for each in plan.network.vswitches}
    assert len(plan.ack.vswitches) == 2
    assert all(sizes[name] <= 25 for name in plan.ack.vswitches)


@pytest.mark.parametrize(
    ("changes", "key", "words"),
    [
        ({"count": None, "min": 1, "max": 4}, "min", "where nothing follows the load yet; give `count`"),
        ({"market": POOL}, "market", "whose pools are on demand or on spot"),
        ({"market": "{kind: assurance, months: 3}"}, "market", "whose pools are on demand or on spot"),
        ({"market": "{kind: spot, protected_hour: true}"}, "market.protected_hour", "cannot stand beside `ack`"),
        ({"placement": "apart"}, "placement", "cannot be 'apart' beside `ack`"),
    ],
)
def test_what_a_node_pool_would_ignore_is_refused(
    ali: Project, changes: dict[str, object], key: str, words: str
) -> None:
    with pytest.raises(SpecError) as caught:
        ali.load(cluster(**{**ACK, "nodes": group(SYSTEM, **{**A10, **changes})}))

    (problem,) = caught.value.problems
    assert problem.key == f"cluster.nodes[1].{key}"
    assert words in problem.message


def test_a_node_pool_is_told_without_the_hour_and_the_set_that_it_cannot_have(ali: Project) -> None:
    nodes = group(SYSTEM, type="ecs.ebmgn7ex.32xlarge", queue_pairs=None, fabric="none", market="{kind: spot}")
    trainer = ali.plan(**{**ACK, "nodes": nodes}).groups[1]

    assert trainer.deployment.strategy is None
    assert trainer.market == Spot(max_price_cny_per_hour=None, fallback=None, protected_hours=0)


def test_what_ack_bills_beside_its_nodes_is_named(ali: Project) -> None:
    names = {item.name for item in ali.plan(**ACK, nodes=group(SYSTEM, **A10)).cost.items}

    assert {"load balancer of the control plane", "log of the control plane, by what it holds"} <= names


def test_the_logs_of_a_cluster_go_with_it(ali: Project) -> None:
    graph = render(ali.plan(**ACK, nodes=group(SYSTEM, **A10)), ali.root)

    (made,) = graph.of("ManagedKubernetes")

    told = {each["resourceType"]: each["deleteMode"] for each in made.inputs["deleteOptions"]}
    assert told == {"SLS_Data": "delete", "SLS_ControlPlane": "delete"}


def test_the_network_plug_in_is_born_enforcing_network_policies(ali: Project) -> None:
    graph = render(ali.plan(**ACK, nodes=group(SYSTEM, **A10)), ali.root)

    (made,) = graph.of("ManagedKubernetes")

    (terway,) = [each for each in made.inputs["addons"] if each["name"] == "terway-eniip"]
    assert json.loads(terway["config"])["NetworkPolicy"] == "true"
