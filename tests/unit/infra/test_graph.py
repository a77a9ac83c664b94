"""The program as a graph: what would be declared, without engine or credentials."""

from __future__ import annotations

import json
import os
import pwd
from pathlib import Path
from typing import Any

import pulumi
import pytest
from projects import REPOSITORY, Project
from pulumi import ComponentResource, CustomResource, Output, ProviderResource, ResourceOptions

from infra.clouds.local.nodes import site
from infra.graph import Graph, canonical, plan_document, record, render
from infra.graph.document import _plain, _row
from infra.graph.program import PROJECT, SECRET, DuplicateUrnError
from infra.spec import SpecError

GOLDEN = Path(__file__).parent / "golden"
STACKS = ("local", "local-machine")


class Disk(CustomResource):
    """A resource of no cloud: `label` is an output that nobody sets."""

    label: Output[str]
    size: Output[int]

    def __init__(self, name: str, size: Any = 1, opts: ResourceOptions | None = None) -> None:
        super().__init__("test:index:Disk", name, {"size": size, "label": None}, opts)


def declared(program: Any, *, preview: bool = False) -> Graph:
    return record(program, REPOSITORY, "x", preview=preview)


@pytest.fixture(params=STACKS)
def stack(request: pytest.FixtureRequest) -> str:
    return request.param


def test_preview_declares_what_up_declares(stack: str) -> None:
    assert set(render(REPOSITORY, stack, preview=True).nodes) == set(render(REPOSITORY, stack).nodes)


def test_every_custom_resource_has_an_explicit_provider(stack: str) -> None:
    nodes = render(REPOSITORY, stack).nodes.values()

    custom = [node for node in nodes if node.custom and not node.type.startswith("pulumi:providers:")]
    assert custom
    assert [node.name for node in custom if not node.provider] == []


def test_names_are_unique_within_a_type(stack: str) -> None:
    nodes = render(REPOSITORY, stack).nodes.values()

    assert len({(node.type, node.name) for node in nodes}) == len(nodes)


def test_the_plan_of_a_stack_is_the_golden_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site.pwd, "getpwuid", lambda _: pwd.struct_passwd(("me", "x", 1, 1, "", "/", "/bin/sh")))
    golden = GOLDEN / "local.json"

    document = plan_document(REPOSITORY, "local")
    del document["decisions"]  # the golden is of what comes of them
    text = canonical(document).replace(str(REPOSITORY), "<root>")

    if os.environ.get("GPUFLEET_UPDATE_GOLDEN"):
        golden.write_text(text)
    assert text == golden.read_text()


def test_the_document_has_the_keys_of_the_contract() -> None:
    document = plan_document(REPOSITORY, "local")

    keys = ["stack", "cloud", "region", "resources", "outputs", "findings", "cost", "commands", "decisions"]
    assert list(document) == keys
    assert [resource["name"] for resource in document["resources"]].count("node-1") == 1
    for resource in document["resources"]:
        assert list(resource) == [
            *("urn", "type", "name", "parent", "custom", "inputs"),
            *("dependencies", "property_dependencies", "provider", "protect"),
        ]
    assert json.loads(json.dumps(document)) == document


def test_a_reference_reads_as_name_and_property() -> None:
    def program() -> None:
        disk = Disk("a")
        pulumi.export("label", disk.label)
        pulumi.export("inside", pulumi.Output.format("<{}>", disk.id))

    assert declared(program).outputs == {"label": "${a.label}", "inside": "<${a.id}>"}


def test_the_pickled_code_of_a_dynamic_resource_is_left_out() -> None:
    graph = render(REPOSITORY, "local")

    assert any("__provider" in node.inputs for node in graph.nodes.values())
    assert "__provider" not in canonical(plan_document(REPOSITORY, "local"))


def test_secrets_never_reach_the_document() -> None:
    def program() -> None:
        Disk("a", size=pulumi.Output.secret("CANARY"))
        pulumi.export("told", pulumi.Output.secret("CANARY"))

    graph = declared(program)

    assert SECRET in json.dumps(graph.of("Disk")[0].inputs)
    assert _row(graph.of("Disk")[0])["inputs"] == {"size": "[secret]"}
    assert _plain(graph.outputs) == {"told": "[secret]"}


def test_outputs_are_unknown_in_a_preview() -> None:
    def program() -> None:
        pulumi.export("label", Disk("a").label)

    assert _plain(declared(program, preview=True).outputs) == {"label": "[unknown]"}


def test_a_resource_inside_apply_is_found_by_comparing_preview_and_up() -> None:
    def program() -> None:
        Disk("a").id.apply(lambda _: Disk("late"))

    up, preview = (declared(program, preview=preview).nodes for preview in (False, True))
    assert {up[urn].name for urn in set(up) - set(preview)} == {"late"}


def test_two_resources_with_one_urn_are_refused() -> None:
    with pytest.raises(DuplicateUrnError, match=r"registered twice: .*::a$"):
        declared(lambda: (Disk("a"), Disk("a")))


def test_urns_parents_providers_and_dependencies_are_those_of_the_engine() -> None:
    class Rack(ComponentResource):
        def __init__(self, opts: ResourceOptions) -> None:
            super().__init__("test:index:Rack", "r", {}, opts)
            first = Disk("a", opts=ResourceOptions(parent=self))
            Disk("b", size=first.size, opts=ResourceOptions(parent=self, protect=True))

    nodes = {
        node.name: node
        for node in declared(
            lambda: Rack(ResourceOptions(providers=[ProviderResource("test", "p", {})]))
        ).nodes.values()
    }

    assert nodes["r"].urn == "urn:pulumi:x::gpufleet::test:index:Rack::r"
    assert nodes["a"].urn == "urn:pulumi:x::gpufleet::test:index:Rack$test:index:Disk::a"
    assert nodes["b"].parent == nodes["r"].urn
    assert nodes["b"].dependencies == (nodes["a"].urn,)
    assert nodes["b"].property_dependencies == {"size": (nodes["a"].urn,)}
    assert nodes["b"].provider == nodes["p"].urn
    assert (nodes["a"].protect, nodes["b"].protect) == (False, True)


def test_renders_do_not_know_of_each_other() -> None:
    class Stranger(ComponentResource):
        def __init__(self) -> None:
            super().__init__("test:index:Stranger", "s", {})
            pulumi.export("mine", 1)

    first = canonical(plan_document(REPOSITORY, "local"))
    declared(Stranger)

    assert canonical(plan_document(REPOSITORY, "local")) == first


@pytest.mark.parametrize("late", [False, True], ids=["in the program", "in apply"])
def test_an_error_of_the_program_reaches_the_caller(late: bool) -> None:
    def program() -> None:
        disk = Disk("a")
        if late:
            disk.id.apply(lambda _: 1 / 0)
        else:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        declared(program)


def test_a_look_up_has_no_answer_without_a_cloud() -> None:
    with pytest.raises(Exception, match="the program asks test:index:zones, which has no answer without a cloud"):
        declared(lambda: pulumi.runtime.invoke("test:index:zones", {}))


def test_a_wrong_stack_file_stops_program_and_document_with_the_same_lines(project: Project) -> None:
    project.write("config:\n  gpufleet:cluster: {cloud: local, isolation: proces, nodes: []}\n")

    with pytest.raises(SpecError) as document:
        plan_document(project.root, "x")
    with pytest.raises(pulumi.RunError) as program:
        render(project.root, "x")

    assert str(program.value) == str(document.value)
    assert len(str(program.value).splitlines()) == 2


def test_a_refused_plan_declares_nothing_and_tells_why(project: Project) -> None:
    project.load("cloud: local\nisolation: process\nnetwork: {port: 22}\nnodes: [{name: a, count: 1}]")

    document = plan_document(project.root, "x")

    assert document["resources"] == []
    assert [finding["rule"] for finding in document["findings"]] == ["process-port-needs-no-root"]
    with pytest.raises(pulumi.RunError, match=r"^stacks/Pulumi.x.yaml:5 cluster.network.port: 22 needs root"):
        render(project.root, "x")


def test_the_recorder_knows_the_project_by_its_name() -> None:
    assert f"name: {PROJECT}\n" in (REPOSITORY / "Pulumi.yaml").read_text()


def test_the_engines_non_public_names_are_where_the_recorder_expects_them() -> None:
    from pulumi import _types
    from pulumi.runtime import mocks, settings, stack
    from pulumi.runtime.proto import resource_pb2

    assert _types.resource_types(Disk)["label"] is str
    assert callable(stack.run_in_stack)
    assert callable(settings.configure)
    assert {"RegisterResource", "RegisterResourceOutputs", "make_urn", "GetDeploymentInfo"} <= set(
        dir(mocks.MockMonitor)
    )
    assert {"object", "parent", "provider", "propertyDependencies", "protect"} <= set(
        resource_pb2.RegisterResourceRequest.DESCRIPTOR.fields_by_name
    )
