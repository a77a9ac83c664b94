"""What is kept and watched: keys, rights, storage, announcements, the budget."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from graph_clusters import CLUSTERS
from rendered import inputs, statements, the, trainer

from infra.graph import Graph, resources

Rendered = Callable[[str], Graph]


def test_everything_at_rest_is_under_the_stacks_key(graph_of: Rendered) -> None:
    graph, key = graph_of("fabric"), "${encryption-key.arn}"
    (root_disk,) = trainer(graph)["blockDeviceMappings"]
    (bucket,) = inputs(graph, "BucketServerSideEncryptionConfiguration", "storage-data-encryption")["rules"]

    assert (root_disk["ebs"]["encrypted"], root_disk["ebs"]["kmsKeyId"]) == ("true", key)
    assert bucket["applyServerSideEncryptionByDefault"] == {"sseAlgorithm": "aws:kms", "kmsMasterKeyId": key}
    assert inputs(graph, "LustreFileSystem")["kmsKeyId"] == key
    assert inputs(graph, "Queue")["kmsMasterKeyId"] == key
    assert inputs(graph, "LogGroup")["kmsKeyId"] == key


def test_the_key_knows_its_account_without_asking_and_lets_scaling_groups_start_nodes(graph_of: Rendered) -> None:
    key = inputs(graph_of("elastic"), "kms/key:Key")
    account, *rest = statements(key["policy"])

    assert account["Principal"] == {"AWS": "arn:aws:iam::${vpc.ownerId}:root"}
    assert (key["enableKeyRotation"], key["rotationPeriodInDays"]) == (True, 365)
    assert "AWSServiceRoleForAutoScaling" in json.dumps(rest)
    assert "AWSServiceRoleForAutoScaling" not in inputs(graph_of("fabric"), "kms/key:Key")["policy"]


def test_a_file_system_may_use_the_key_for_the_bucket_that_it_shows_and_through_s3_alone(graph_of: Rendered) -> None:
    shown = statements(inputs(graph_of("fabric"), "kms/key:Key")["policy"])[-1]

    assert shown["Condition"]["StringEquals"]["kms:ViaService"] == "s3.us-east-1.amazonaws.com"
    assert shown["Condition"]["ArnLike"]["aws:PrincipalArn"].endswith("/AWSServiceRoleForFSxS3Access_*")
    assert {"kms:Decrypt", "kms:GenerateDataKey"} < set(shown["Action"])
    assert "AWSServiceRoleForFSxS3Access" not in inputs(graph_of("spot"), "kms/key:Key")["policy"]


def test_the_nodes_role_names_its_actions_and_buckets(graph_of: Rendered) -> None:
    allowed = statements(inputs(graph_of("fabric"), "RolePolicy", "nodes-permissions")["policy"])

    assert not [action for one in allowed for action in one["Action"] if "*" in action]
    assert [one["Resource"] for one in allowed if one["Sid"] == "UseObjects"] == [["${storage-data-bucket.arn}/*"]]


def test_of_the_stacks_own_bucket_nodes_read_bundles_and_nothing_else(graph_of: Rendered) -> None:
    allowed = statements(inputs(graph_of("fabric"), "RolePolicy", "nodes-permissions")["policy"])
    about = [one for one in allowed if any("own-bucket" in resource for resource in one["Resource"])]

    assert [(one["Action"], one["Resource"]) for one in about] == [(["s3:GetObject"], ["${own-bucket.arn}/bundles/*"])]


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_what_lies_in_buckets_answers_the_stacks_own_network_alone(cluster: str, graph_of: Rendered) -> None:
    policies = [node for node in graph_of(cluster).of("RolePolicy") if '"s3:' in str(node.inputs["policy"])]

    for node in policies:
        for one in statements(inputs(graph_of(cluster), "RolePolicy", node.name)["policy"]):
            named = one.get("Condition", {}).get("StringEquals", {})
            if any(action.startswith("s3:") for action in one["Action"]):
                assert named == {"aws:SourceVpc": "${vpc.id}"}, one["Sid"]
            if any(action.startswith("kms:") for action in one["Action"]):
                assert named == {"kms:ViaService": "s3.us-east-1.amazonaws.com"}, one["Sid"]
    sessions = [node for node in graph_of(cluster).of("RolePolicy") if node.name == "storage-permissions"]
    assert len(policies) == 1 + len(sessions)


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_every_subnet_reaches_buckets_by_the_endpoint_and_no_right_to_them_comes_before_it(
    cluster: str, graph_of: Rendered
) -> None:
    graph = graph_of(cluster)
    endpoint = the(graph, "VpcEndpoint", "endpoint-s3")
    waiting = [
        row["property_dependencies"]["policy"]
        for row in resources(graph)
        if row["type"].endswith(":RolePolicy") and '"s3:' in row["inputs"]["policy"]
    ]

    routes = inputs(graph, "VpcEndpoint", "endpoint-s3")["routeTableIds"]
    assert set(routes) == {f"${{{node.name}.id}}" for node in graph.of("RouteTable")}
    assert all(endpoint.urn in urns for urns in waiting)


def test_nodes_without_a_bucket_to_write_to_decrypt_and_encrypt_nothing(graph_of: Rendered) -> None:
    use = {
        cluster: next(
            one["Action"]
            for one in statements(inputs(graph_of(cluster), "RolePolicy", "nodes-permissions")["policy"])
            if one["Sid"] == "UseKey"
        )
        for cluster in ("fabric", "spot")
    }

    assert use == {"fabric": ["kms:Decrypt", "kms:GenerateDataKey"], "spot": ["kms:Decrypt"]}


def test_the_storage_role_is_taken_on_by_the_stacks_nodes_and_nobody_else(graph_of: Rendered) -> None:
    graph = graph_of("fabric")
    (trust,) = statements(inputs(graph, "iam/role:Role", "storage-role")["assumeRolePolicy"])
    allowed = statements(inputs(graph, "RolePolicy", "nodes-permissions")["policy"])
    taken_on = [(one["Action"], one["Resource"]) for one in allowed if "sts:AssumeRole" in one["Action"]]

    assert (trust["Principal"], trust["Action"]) == ({"AWS": "${nodes-role.arn}"}, "sts:AssumeRole")
    assert taken_on == [(["sts:AssumeRole"], ["${storage-role.arn}"])]


def test_the_storage_role_reaches_objects_of_the_stack_files_buckets_alone(graph_of: Rendered) -> None:
    allowed = statements(inputs(graph_of("fabric"), "RolePolicy", "storage-permissions")["policy"])

    assert not [action for one in allowed for action in one["Action"] if "*" in action]
    assert {resource for one in allowed for resource in one["Resource"]} == {
        "${storage-data-bucket.arn}",
        "${storage-data-bucket.arn}/*",
        "${encryption-key.arn}",
    }


@pytest.mark.parametrize("cluster", ["spot", "eks"])
def test_without_a_bucket_of_machines_there_is_no_storage_role(cluster: str, graph_of: Rendered) -> None:
    graph = graph_of(cluster)

    assert [node.name for node in graph.of("iam/role:Role") if node.name == "storage-role"] == []
    assert not [node for node in graph.of("RolePolicy") if "sts:AssumeRole" in str(node.inputs["policy"])]


def test_announcements_reach_the_queue_and_nobody_else_writes_to_it(graph_of: Rendered) -> None:
    graph = graph_of("spot")
    patterns = [json.loads(node.inputs["eventPattern"]) for node in graph.of("EventRule")]
    allow, deny = statements(inputs(graph, "QueuePolicy")["policy"])

    assert {"source": ["aws.ec2"], "detail-type": ["EC2 Spot Instance Interruption Warning"]} in patterns
    assert allow["Principal"] == {"Service": "events.amazonaws.com"}
    assert allow["Condition"]["StringEquals"] == {"aws:SourceAccount": "${vpc.ownerId}"}
    assert "${spot-interruption-event.arn}" in allow["Condition"]["ArnEquals"]["aws:SourceArn"]
    assert (deny["Effect"], deny["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})


def test_the_budget_counts_what_carries_the_stacks_tag(graph_of: Rendered) -> None:
    budget = inputs(graph_of("fabric"), "Budget", "budget-monthly")

    assert budget["costFilters"] == [{"name": "TagKeyValue", "values": ["user:gpufleet:stack$fabric"]}]
    assert (budget["limitAmount"], budget["limitUnit"]) == ("70000.00", "USD")
    assert [one["threshold"] for one in budget["notifications"]] == [50, 80, 100]


def test_a_file_system_shows_its_bucket(graph_of: Rendered) -> None:
    association = inputs(graph_of("fabric"), "DataRepositoryAssociation")

    assert association["dataRepositoryPath"] == "s3://${storage-data-bucket.bucket}"
    assert association["fileSystemId"] == "${storage-fast-files.id}"
