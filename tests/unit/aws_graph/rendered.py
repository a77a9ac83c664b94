"""Clusters on AWS, rendered without engine or credentials."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

from infra.__main__ import declare
from infra.evaluate import decide
from infra.graph import Graph, RenderedResource, record, resources
from infra.plan.model import Plan
from infra.spec import load

REPOSITORY = Path(__file__).resolve().parents[3]


def shipped() -> list[str]:
    """The stacks on AWS that come with the project."""
    files = (REPOSITORY / "stacks").glob("Pulumi.*.yaml")
    return sorted(file.stem.removeprefix("Pulumi.") for file in files if "    cloud: aws\n" in file.read_text())


def planned(root: Path, cluster: str, stack: str = "x") -> Plan:
    """The plan of a stack file whose cluster is this text; errors of its rules are the test's own mistake."""
    lines = ("    " + line for line in cluster.splitlines())
    (root / "stacks").mkdir(exist_ok=True)
    (root / "stacks" / f"Pulumi.{stack}.yaml").write_text("\n".join(["config:", "  gpufleet:cluster:", *lines, ""]))
    plan = decide(load(root, stack))
    assert plan.errors == ()
    return plan


def render(plan: Plan, root: Path, *, preview: bool = False) -> Graph:
    return record(lambda: declare(plan, root), root, plan.stack, preview=preview)


def the(graph: Graph, kind: str, name: str | None = None) -> RenderedResource:
    """The only resource of a type, or the one of that name."""
    (node,) = (node for node in graph.of(kind) if name in (None, node.name))
    return node


def inputs(graph: Graph, kind: str, name: str | None = None) -> dict[str, Any]:
    """Its inputs as the plan's document shows them."""
    urn = the(graph, kind, name).urn
    (row,) = (row for row in resources(graph) if row["urn"] == urn)
    return row["inputs"]


def statements(policy: str) -> list[dict[str, Any]]:
    return json.loads(policy)["Statement"]


def script(template: dict[str, Any]) -> str:
    return b64decode(template["userData"]).decode()


def trainer(graph: Graph) -> dict[str, Any]:
    """The launch template of the group `trainer`."""
    return inputs(graph, "LaunchTemplate", "trainer-template")
