"""The role that nodes take on for jobs' and tenants' storage sessions: theirs alone, and about the stack's buckets."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ack_rule_cases import ACK
from ali_clusters import SYSTEM, Project, group
from ali_rule_cases import A10, DATA
from rendered import render  # pyright: ignore[reportMissingImports]: conftest.py finds it

from infra.graph import Graph
from infra.policy import check

ARN = "${storage-role.arn}"


@pytest.fixture
def graph(ali: Project) -> Graph:
    """A cluster with a bucket."""
    return render(ali.plan(storage=DATA), ali.root)


def document(graph: Graph, kind: str, name: str, key: str) -> list[dict[str, Any]]:
    (node,) = [each for each in graph.of(kind) if each.name == name]
    return json.loads(node.inputs[key])["Statement"]


def handover_of(graph: Graph) -> dict[str, Any]:
    (handover,) = graph.outputs.values()
    return handover


def test_the_nodes_role_alone_may_take_on_the_storage_role(graph: Graph) -> None:
    (trust,) = document(graph, "ram/role:Role", "storage-role", "assumeRolePolicyDocument")

    assert trust["Principal"] == {"RAM": ["${nodes-role.arn}"]}
    assert trust["Action"] == "sts:AssumeRole"


def test_the_nodes_role_may_take_on_no_other(graph: Graph) -> None:
    statements = document(graph, "ram/policy:Policy", "nodes-permissions", "policyDocument")

    assert [each["Resource"] for each in statements if "sts:AssumeRole" in each["Action"]] == [[ARN]]


def test_the_storage_role_is_about_the_stack_files_buckets_and_the_key_alone(graph: Graph) -> None:
    statements = document(graph, "ram/policy:Policy", "storage-permissions", "policyDocument")

    (bucket,) = {each.name for each in graph.of("oss/bucket:Bucket")} - {"own-bucket"}
    about = {resource for each in statements for resource in each["Resource"]}
    names = f"acs:oss:*:*:${{{bucket}.bucket}}"
    assert about == {names, f"{names}/*", "${encryption-key.arn}"}
    assert not [action for each in statements for action in each["Action"] if "*" in action or "Bucket" in action]


def test_both_roles_keep_the_policy(graph: Graph) -> None:
    roles = {"alicloud:ram/role:Role", "alicloud:ram/policy:Policy", "alicloud:ram/rolePolicyAttachment"}
    rows = [vars(node) for node in graph.nodes.values() if node.type in roles]

    assert [finding for finding in check(rows) if finding.rule != "required-tags"] == []


def test_nodes_and_people_are_told_its_name(graph: Graph) -> None:
    assert handover_of(graph)["storage_role"] == ARN


def test_a_stack_without_buckets_and_one_of_ack_have_none(ali: Project) -> None:
    bare = render(ali.plan(), ali.root)
    pods = render(ali.plan(**ACK, nodes=group(SYSTEM, **A10), storage=DATA), ali.root)

    assert [each.name for each in bare.of("ram/role:Role")] == ["nodes-role"]
    assert pods.of("ram/role:Role") == []
    assert handover_of(bare)["storage_role"] == handover_of(pods)["storage_role"] == ""
