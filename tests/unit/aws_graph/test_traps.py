"""Defaults of AWS that leak, cost or break, in every stack that uses the resource: each is set, or stays away."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from graph_clusters import CLUSTERS, FABRIC
from rendered import inputs, planned, render

from infra.clouds.aws.plan.model import AwsPlan
from infra.graph import Graph, resources

Rendered = Callable[[str], Graph]
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
EFA_ONLY = {"networkCardIndex", "deviceIndex", "interfaceType", "securityGroups", "deleteOnTermination"}


@pytest.fixture(params=CLUSTERS)
def graph(request: pytest.FixtureRequest, graph_of: Rendered) -> Graph:
    return graph_of(request.param)


def each(graph: Graph, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and inputs of every resource of a type."""
    yield from ((row["name"], row["inputs"]) for row in resources(graph) if row["type"] == kind)


def test_an_efa_only_interface_has_nothing_of_an_address(graph: Graph) -> None:
    cards = [card for _, found in each(graph, TEMPLATE) for card in found["networkInterfaces"]]

    assert all(set(card) == EFA_ONLY for card in cards if card.get("interfaceType") == "efa-only")
    assert {card["deleteOnTermination"] for card in cards} == {"true"}


def test_the_metadata_of_every_node_needs_a_token_and_reaches_its_containers_but_no_pod(graph: Graph) -> None:
    hops = 1 if graph.of("eks/cluster:Cluster") else 2

    for _, found in each(graph, TEMPLATE):
        assert found["metadataOptions"] == {
            "httpEndpoint": "enabled",
            "httpTokens": "required",
            "httpPutResponseHopLimit": hops,
        }


def test_a_node_that_shuts_itself_down_leaves_no_billed_disk_behind(graph_of: Rendered) -> None:
    def on_shutdown(cluster: str, group: str) -> str:
        return inputs(graph_of(cluster), "LaunchTemplate", f"{group}-template")["instanceInitiatedShutdownBehavior"]

    assert on_shutdown("fabric", "trainer") == on_shutdown("elastic", "server") == "terminate"
    assert on_shutdown("fabric", "head") == "stop"


def test_the_type_that_was_asked_for_is_the_one_that_is_started(root: Path, graph: Graph) -> None:
    plan = planned(root, CLUSTERS[graph.outputs["cluster"]["stack"]], graph.outputs["cluster"]["stack"])
    assert isinstance(plan, AwsPlan)

    asked = {f"{group.name}-template": group.type for group in plan.groups}
    assert {name: found["instanceType"] for name, found in each(graph, TEMPLATE)} == asked


def test_no_fleet_outlives_its_stack_or_runs_old_nodes_beside_new_ones(graph: Graph) -> None:
    for _, found in each(graph, "aws:ec2/fleet:Fleet"):
        assert found["terminateInstances"] is found["terminateInstancesWithExpiration"] is True
        assert "maintenanceStrategies" not in found.get("spotOptions", {})
        assert found["replaceUnhealthyInstances"] == (found["type"] == "maintain")


def test_no_scaling_group_rebalances_a_job_away_or_is_removed_by_force(graph: Graph) -> None:
    for _, found in each(graph, "aws:autoscaling/group:Group"):
        assert found["capacityRebalance"] is False
        assert "forceDelete" not in found


def test_nothing_is_bought_that_a_destroy_would_not_give_back(graph: Graph) -> None:
    assert graph.of("CapacityReservation") + graph.of("CapacityBlockReservation") == []


def test_every_bucket_forgets_what_nobody_needs_and_asks_kms_seldom(graph: Graph) -> None:
    buckets = [name.removesuffix("-bucket") for name, _ in each(graph, "aws:s3/bucket:Bucket")]

    for name in buckets:
        (forget,) = inputs(graph, "BucketLifecycleConfiguration", f"{name}-lifecycle")["rules"]
        (encryption,) = inputs(graph, "BucketServerSideEncryptionConfiguration", f"{name}-encryption")["rules"]
        assert forget["abortIncompleteMultipartUpload"] == {"daysAfterInitiation": 7}
        assert forget["noncurrentVersionExpiration"] == {"noncurrentDays": 30}
        assert encryption["bucketKeyEnabled"] is True
        assert inputs(graph, "BucketVersioning", f"{name}-versions")["versioningConfiguration"] == {"status": "Enabled"}


@pytest.mark.parametrize(("bucket", "skipped"), [(", bucket: data", True), ("", False)])
def test_a_file_system_without_a_bucket_behind_it_is_backed_up_before_it_goes(
    root: Path, bucket: str, skipped: bool
) -> None:
    graph = render(planned(root, FABRIC.replace("4800, bucket: data", f"4800{bucket}")), root)

    assert inputs(graph, "LustreFileSystem")["skipFinalBackup"] is skipped


def test_a_file_system_over_efa_says_so_with_its_metadata(root: Path) -> None:
    graph = render(planned(root, FABRIC.replace("size_gib: 4800", "size_gib: 19200, efa: true")), root)
    found = inputs(graph, "LustreFileSystem")

    assert (found["efaEnabled"], found["deploymentType"]) == (True, "PERSISTENT_2")
    assert found["metadataConfiguration"] == {"mode": "AUTOMATIC"}
    assert found["subnetIds"] == "${private-us-east-1d.id}"
