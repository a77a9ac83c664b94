"""A cluster on AWS as a graph: what holds for each of them."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from graph_clusters import CLUSTERS, FABRIC, SPOT
from rendered import REPOSITORY, inputs, planned, render, shipped

from infra import policy
from infra.clouds.base.resources import bundle
from infra.graph import Graph, canonical, plan_document, resources
from infra.graph import render as render_stack
from infra.handover import Handover

GOLDEN = Path(__file__).parent / "golden"
Rendered = Callable[[str], Graph]


@pytest.fixture(params=CLUSTERS)
def graph(request: pytest.FixtureRequest, graph_of: Rendered) -> Graph:
    return graph_of(request.param)


def test_every_custom_resource_has_the_one_explicit_provider(graph: Graph) -> None:
    custom = [node for node in graph.nodes.values() if node.custom and not node.type.startswith("pulumi:providers:")]

    assert {node.provider for node in custom} == {node.urn for node in graph.of("pulumi:providers:aws")}


def test_no_two_resources_share_a_name(graph: Graph) -> None:
    names = Counter(node.name for node in graph.nodes.values())

    assert [name for name, times in names.items() if times > 1] == []


def test_the_policy_finds_nothing(graph: Graph) -> None:
    assert policy.check(resources(graph)) == ()


def test_every_resource_that_takes_tags_has_its_logical_name(graph: Graph) -> None:
    tagged = {
        node.name: node.inputs["tags"]["gpufleet:name"]
        for node in graph.nodes.values()
        if isinstance(node.inputs.get("tags"), dict)
    }

    assert len(tagged) > 20
    assert [name for name, tag in tagged.items() if tag != name] == []


def test_every_policy_document_is_json_of_the_newest_language(graph: Graph) -> None:
    texts = [
        text
        for node in graph.nodes.values()
        for key in ("policy", "assumeRolePolicy")
        if isinstance(text := node.inputs.get(key), str)
    ]

    assert texts
    assert {json.loads(text)["Version"] for text in texts} == {"2012-10-17"}


def test_no_output_of_the_cloud_is_read_before_it_is_there(graph: Graph) -> None:
    assert "None" not in json.dumps(resources(graph))
    assert "[unknown]" not in json.dumps(resources(graph))


def test_the_handover_is_whole(graph: Graph) -> None:
    told = Handover.model_validate(graph.outputs["cluster"])

    assert (told.cloud, told.nodes) == ("aws", ())
    assert told.access.user == ("ec2-user" if told.kubernetes else "ubuntu")


@pytest.mark.parametrize("name", CLUSTERS)
def test_preview_declares_what_up_declares(name: str, root: Path, graph_of: Rendered) -> None:
    preview = render(planned(root, CLUSTERS[name], name), root, preview=True)

    assert set(preview.nodes) == set(graph_of(name).nodes)


@pytest.mark.parametrize("cluster", [FABRIC, SPOT], ids=["instant", "maintain"])
def test_a_thousand_nodes_are_as_many_resources_as_four(cluster: str, root: Path) -> None:
    rich = cluster.replace("{hourly: 200, monthly: 70000", "{hourly: 90000, monthly: 90000000")
    few, many = planned(root, rich), planned(root, rich.replace("count: 4", "count: 1000"))

    four, thousand = render(few, root), render(many, root)

    assert set(four.nodes) == set(thousand.nodes)
    assert inputs(thousand, "Fleet")["targetCapacitySpecification"]["totalTargetCapacity"] == 1000


def test_another_folder_changes_no_node(root: Path, tmp_path: Path, graph_of: Rendered) -> None:
    shutil.copy(REPOSITORY / "Pulumi.yaml", tmp_path)
    elsewhere = render(planned(tmp_path, FABRIC, "fabric"), tmp_path)

    assert _templates(elsewhere) == _templates(graph_of("fabric"))


def _templates(graph: Graph) -> list[dict[str, Any]]:
    return [node.inputs for node in graph.of("LaunchTemplate")]


@pytest.mark.parametrize("stack", shipped())
def test_a_shipped_stack_has_no_error_and_no_finding_of_the_policy(stack: str) -> None:
    document = plan_document(REPOSITORY, stack)

    assert [finding for finding in document["findings"] if finding["level"] == "error"] == []
    assert document["resources"]


@pytest.mark.parametrize("stack", shipped())
def test_a_shipped_stack_previews_what_it_makes(stack: str) -> None:
    assert set(render_stack(REPOSITORY, stack, preview=True).nodes) == set(render_stack(REPOSITORY, stack).nodes)


@pytest.mark.parametrize("stack", ["a100-prod", "eks-a100"])
def test_the_plan_of_a_stack_is_the_golden_one(stack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "packed", lambda _: b"playbooks")
    golden = GOLDEN / f"{stack}.json"

    document = plan_document(REPOSITORY, stack)
    del document["decisions"]  # the goldens are of what comes of them
    text = canonical(document).replace(str(REPOSITORY), "<root>")

    if os.environ.get("GPUFLEET_UPDATE_GOLDEN"):
        golden.write_text(text)
    assert text == golden.read_text()


def test_only_the_cloud_s_own_folder_imports_its_sdk() -> None:
    pattern = re.compile(r"^\s*(?:from|import) pulumi_aws\b", re.MULTILINE)
    users = {file for file in (REPOSITORY / "infra").rglob("*.py") if pattern.search(file.read_text())}

    assert users
    assert {file for file in users if not file.is_relative_to(REPOSITORY / "infra/clouds/aws/resources")} == set()
