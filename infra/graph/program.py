"""Runs the Pulumi program in this process and records its resource graph: no engine, no credentials, nothing created.

The only file that touches Pulumi's non-public names (`MockMonitor`, `MockSettings`, `MockEngine`, `run_in_stack`,
`_types`); SDK 3.272.0, pinned, with a canary test. The steps are those of the SDK's own language host.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import runpy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pulumi
from google.protobuf import json_format
from pulumi import _types
from pulumi.runtime import mocks, settings
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.stack import run_in_stack

from infra import registry
from infra.gc_pause import uncollected
from infra.plan.model import Plan

PROJECT = "gpufleet"
STACK_TYPE = "pulumi:pulumi:Stack"
STACK_REFERENCE = "pulumi:pulumi:StackReference"

# The engine's signatures on the wire (sdk/go/common/resource/sig and plugin/rpc.go).
SECRET = "4dabf18193072939515e22adb298388d"
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"


@dataclass(frozen=True, kw_only=True)
class RenderedResource:
    """One resource as the program registers it; inputs are Pulumi's wire names and values.

    ignores, replaced_on: paths of inputs whose changes are left alone, and those whose changes make another resource.
    """

    urn: str
    type: str
    name: str
    parent: str
    custom: bool
    inputs: dict[str, Any]
    dependencies: tuple[str, ...]
    property_dependencies: dict[str, tuple[str, ...]]
    provider: str
    protect: bool
    ignores: tuple[str, ...]
    replaced_on: tuple[str, ...]


@dataclass
class Graph:
    """What a program declares: its resources by URN, and the outputs of the stack."""

    nodes: dict[str, RenderedResource] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)

    def of(self, kind: str) -> list[RenderedResource]:
        """The resources of a type, named whole or by its last part (`Node`)."""
        return [node for node in self.nodes.values() if node.type == kind or node.type.endswith(f":{kind}")]


class DuplicateUrnError(ValueError):
    """Two resources of one type, parent and name: the engine would refuse the second."""


def render(root: Path, stack: str, *, preview: bool = False) -> Graph:
    """The graph of the project's program, `<root>/infra`.

    Texts and numbers that no one sets read `${name.property}`; with preview they are unknown, as in a first preview.
    Each render has an event loop and a context of its own. Raises what the program raises.
    """
    return record(lambda: runpy.run_path(str(root / "infra"), run_name="__main__"), root, stack, preview=preview)


def rendered(plan: Plan, root: Path) -> Graph:
    """The graph of a plan that is ready: nothing is loaded or checked again. Raises what declaring it raises."""
    from infra.__main__ import declare

    return record(lambda: declare(plan, root), root, plan.stack)


def record(program: Callable[[], object], root: Path, stack: str, *, preview: bool = False) -> Graph:
    """The graph of any program."""
    with uncollected():
        return contextvars.copy_context().run(_record, program, root, stack, preview)


def _record(program: Callable[[], object], root: Path, stack: str, preview: bool) -> Graph:
    classes: dict[str, type] = {}
    monitor = _Recorder(_Symbols(classes), preview)
    pulumi.runtime.set_all_config({}, [])
    settings.configure(
        mocks.MockSettings(
            monitor=monitor,
            engine=mocks.MockEngine(logging.getLogger(__name__)),
            project=PROJECT,
            stack=stack,
            dry_run=preview,
            organization="organization",
            callbacks=None,
            root_directory=str(root),
            monitor_features=set(monitor.GetDeploymentInfo(None).supportedFeatures),
        )
    )

    def note(args: pulumi.ResourceTransformationArgs) -> None:
        classes.setdefault(args.type_, type(args.resource))

    async def body() -> None:
        pulumi.runtime.register_stack_transformation(note)
        program()

    with asyncio.Runner() as runner:
        runner.run(run_in_stack(body))
    if monitor.repeated:
        raise DuplicateUrnError("registered twice: " + ", ".join(monitor.repeated))
    return monitor.graph


class _Recorder(mocks.MockMonitor):
    """Keeps the raw registrations: the arguments that mocks get hide parent, provider and dependencies."""

    def __init__(self, cloud: mocks.Mocks, preview: bool) -> None:
        super().__init__(cloud)
        self.graph, self.preview = Graph(), preview
        self.repeated: list[str] = []

    def make_urn(self, parent: str, type_: str, name: str) -> str:
        """As the engine names it: with the types of all its components, of which the stack is none."""
        above = "".join(f"{kind}$" for kind in parent.split("::")[2:3] if kind != STACK_TYPE)
        return super().make_urn("", above + type_, name)

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 (the wire's name)
        urn = self.make_urn(request.parent, request.type, request.name)
        if urn in self.graph.nodes:
            self.repeated.append(urn)
        self.graph.nodes[urn] = RenderedResource(
            urn=urn,
            type=request.type,
            name=request.name,
            parent=request.parent,
            custom=bool(request.custom),
            inputs=json_format.MessageToDict(request.object),
            dependencies=tuple(sorted(request.dependencies)),
            property_dependencies={
                key: tuple(sorted(value.urns)) for key, value in sorted(request.propertyDependencies.items())
            },
            provider=request.provider.rpartition("::")[0],  # without the id behind its URN
            protect=bool(request.protect),
            ignores=tuple(request.ignoreChanges),
            replaced_on=tuple(request.replaceOnChanges),
        )
        answer = super().RegisterResource(request)
        if self.preview and request.custom:  # a first preview knows no id, and nothing beyond the inputs
            return resource_pb2.RegisterResourceResponse(urn=urn, object=request.object)
        return answer

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802 (the wire's name)
        if f"::{STACK_TYPE}::" in request.urn:
            self.graph.outputs = json_format.MessageToDict(request.outputs)
        return super().RegisterResourceOutputs(request)


class _Symbols(mocks.Mocks):
    """Answers a registration with its inputs, and with a symbol for each text or number that the inputs leave open."""

    def __init__(self, classes: dict[str, type]) -> None:
        self.classes = classes

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        state = dict(args.inputs)
        if args.typ == STACK_REFERENCE:  # another stack has told nothing yet
            return args.resource_id or args.name, {**state, "outputs": {}, "secretOutputNames": []}
        if not args.custom:
            return "", state
        for name, kind in _types.resource_types(self.classes.get(args.typ, pulumi.CustomResource)).items():
            if state.get(name) is None and _types.unwrap_type(kind) in (str, int):
                state[name] = f"${{{args.name}.{name}}}"
            elif texts := _filled().get((args.typ, name)):
                state[name] = {text: f"${{{args.name}.{name}.{text}}}" for text in texts}
        return f"${{{args.name}.id}}", state

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        """Answered by the clouds, for the functions that their programs call (`infra.registry.Cloud.invokes`)."""
        if answer := _invokes().get(args.token):
            return answer(args.args), []
        raise LookupError(f"the program asks {args.token}, which has no answer without a cloud")


def _filled() -> Mapping[tuple[str, str], tuple[str, ...]]:
    """The objects that clouds fill in and programs read: by type and property, the texts in them."""
    tables = [registry.cloud(name).filled for name in registry.CLOUDS]
    return {key: texts for table in tables if table for key, texts in registry.part(table).items()}


def _invokes() -> Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]]:
    """The answers of all clouds, by the functions' tokens."""
    tables = [registry.cloud(name).invokes for name in registry.CLOUDS]
    return {token: answer for table in tables if table for token, answer in registry.part(table).items()}
