"""What nodes and people are told of a cluster on AWS: what to mount, and with which key to log in."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from rendered import inputs, script

from infra.graph import Graph
from infra.handover import Handover

Rendered = Callable[[str], Graph]


def told(graph: Graph) -> Handover:
    return Handover.model_validate(graph.outputs["cluster"])


def test_everything_that_mounting_needs_is_told(graph_of: Rendered) -> None:
    data, fast = told(graph_of("fabric")).storage

    assert (data.kind, data.path, data.source) == ("bucket", "/data", "${storage-data-bucket.bucket}")
    assert data.options == ("allow-other", "dir-mode=0750", "file-mode=0640", "allow-delete")
    assert (fast.kind, fast.path) == ("lustre", "/fast")
    assert fast.source == "${storage-fast-files.dnsName}@tcp:/${storage-fast-files.mountName}"
    assert fast.options == ("relatime", "flock")


def test_a_node_is_told_the_same_storage_as_people_are(graph_of: Rendered) -> None:
    text = script(inputs(graph_of("fabric"), "LaunchTemplate", "trainer-template"))
    boot = json.loads(text.split("<<'GPUFLEET'\n")[1].split("\nGPUFLEET\n")[0])

    assert Handover.model_validate(boot["handover"]).storage == told(graph_of("fabric")).storage


@pytest.mark.parametrize(("name", "arn"), [("fabric", "${storage-role.arn}"), ("spot", ""), ("eks", "")])
def test_nodes_and_people_are_told_the_storage_role_where_there_is_a_bucket(
    name: str, arn: str, graph_of: Rendered
) -> None:
    assert told(graph_of(name)).storage_role == arn
    if name == "fabric":
        assert arn in script(inputs(graph_of(name), "LaunchTemplate", "trainer-template"))


@pytest.mark.parametrize(
    ("name", "pair", "file"), [("fabric", True, True), ("block", False, True), ("eks", False, False)]
)
def test_a_key_file_is_told_wherever_people_log_in(graph_of: Rendered, name: str, pair: bool, file: bool) -> None:
    graph = graph_of(name)

    assert (bool(graph.of("KeyPair")), bool(told(graph).access.key_file)) == (pair, file)


@pytest.mark.parametrize("name", ["fabric", "spot", "alone"])
def test_plain_machines_are_no_cluster_of_kubernetes(graph_of: Rendered, name: str) -> None:
    assert told(graph_of(name)).kubernetes is None
