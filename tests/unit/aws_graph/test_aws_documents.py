"""The policies of a cluster in the eyes of IAM: its grammar, and actions that AWS knows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
from graph_clusters import CLUSTERS
from moto.iam.aws_managed_policies import aws_managed_policies_data
from moto.iam.policy_validation import IAMPolicyDocumentValidator, IAMTrustPolicyDocumentValidator
from rendered import statements

from infra.graph import Graph, resources

OWN = {"kms:*"}  # of the account, over its key
LOG_GROUPS = "arn:aws:logs:us-east-1:${vpc.ownerId}:log-group:*"


def documents(graph: Graph, *names: str) -> Iterator[str]:
    """The documents under these inputs, with values where they refer to other resources."""
    for row in resources(graph):
        for name in names:
            if isinstance(text := row["inputs"].get(name), str):
                arns = re.sub(r"\$\{[^}]+\.arn\}", "arn:aws:s3:::made", text)
                yield re.sub(r"\$\{[^}]+\}", "123456789012", arns)


def actions(statement: dict[str, Any]) -> set[str]:
    action = statement.get("Action", [])
    return {action} if isinstance(action, str) else set(action)


@cache
def known() -> frozenset[str]:
    """Every action that one of the policies names which AWS itself keeps."""
    kept = [policy["Document"]["Statement"] for policy in json.loads(aws_managed_policies_data).values()]
    every = (one for listed in kept for one in (listed if isinstance(listed, list) else [listed]))
    return frozenset(action for one in every for action in actions(one))


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_every_action_is_one_that_aws_names_itself(cluster: str, graph_of: Callable[[str], Graph]) -> None:
    texts = documents(graph_of(cluster), "policy", "assumeRolePolicy")
    named = {action for text in texts for statement in statements(text) for action in actions(statement)}

    assert "s3:GetObject" in named or "ec2:DescribeInstances" in named
    assert named - known() - OWN == set()


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_every_policy_keeps_to_the_grammar(cluster: str, graph_of: Callable[[str], Graph]) -> None:
    graph = graph_of(cluster)
    for trust in documents(graph, "assumeRolePolicy"):
        IAMTrustPolicyDocumentValidator(trust).validate()
    for text in documents(graph, "policy"):
        document = json.loads(text)
        for statement in document["Statement"]:
            statement.pop("Principal", None)  # which a resource's own policy has beside the rest
        IAMPolicyDocumentValidator(json.dumps(document)).validate()


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_service_is_let_in_for_this_account_alone(cluster: str, graph_of: Callable[[str], Graph]) -> None:
    let_in = {
        statement["Principal"]["Service"]: statement.get("Condition", {})
        for row in resources(graph_of(cluster))
        for name in ("policy", "assumeRolePolicy")
        for statement in statements(row["inputs"].get(name) or '{"Statement": []}')
        if "Service" in (statement.get("Principal") or "")
    }

    assert {"vpc-flow-logs.amazonaws.com", "events.amazonaws.com", "logs.us-east-1.amazonaws.com"} < set(let_in)
    logs = let_in.pop("logs.us-east-1.amazonaws.com")
    assert logs == {"ArnLike": {"kms:EncryptionContext:aws:logs:arn": LOG_GROUPS}}
    accounts = {
        service: condition.get("StringEquals", {}).get("aws:SourceAccount") for service, condition in let_in.items()
    }
    unbound = {service for service, account in accounts.items() if account != "${vpc.ownerId}"}
    assert unbound <= {"ec2.amazonaws.com"}
