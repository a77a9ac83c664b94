"""The rendered plan as JSON that people, goldens and later stages read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from infra import policy
from infra.evaluate import Evaluation, evaluate
from infra.graph.boot import boot_commands
from infra.graph.program import SECRET, UNKNOWN, Graph, RenderedResource, rendered
from infra.plan.model import Plan
from infra.spec.cluster import Budget

ELSEWHERE = ("stack", "cloud", "region", "cost", "findings")  # keys of the plan that the document has itself
PICKLE = "__provider"  # a dynamic resource carries its own code, which says nothing about the resource


def plan_document(root: Path, stack: str, evaluation: Evaluation | None = None) -> dict[str, Any]:
    """What `gpufleet plan STACK --json` prints. A plan with error findings declares nothing: its resources are empty.

    Findings are those of the decision, whose paths are keys of the stack file, and those of the policy over what would
    be declared, whose paths are inputs of resources. Commands are all that will run on this computer, and on nodes as
    root; decisions are the plan itself, which has more to say than few resources can.

    evaluation: the stack's, where the caller has it already. Raises SpecError for a stack file that is wrong, and what
    the program raises.
    """
    evaluation = evaluation or evaluate(root, stack)
    plan, budget = evaluation.plan, evaluation.file.spec.budget
    graph = Graph() if plan.errors else rendered(plan, root)
    rows = resources(graph)
    violations = policy.check(rows, budget.hourly if budget else None)
    return {
        "stack": plan.stack,
        "cloud": plan.cloud,
        "region": plan.region,
        "resources": rows,
        "outputs": _plain(graph.outputs),
        "findings": [finding.to_json() for finding in (*plan.findings, *violations)],
        "cost": plan.cost.to_json(),
        "commands": [command.to_json() for command in (*plan.commands, *boot_commands(rows))],
        "decisions": decisions(plan, budget),
    }


def decisions(plan: Plan, budget: Budget | None) -> dict[str, Any]:
    """The plan as data, with the limits of what it may cost: only a rule reads the limits, and raising one
    allows more to be bought."""
    limits = {} if budget is None else {"limits": budget.model_dump(mode="json")}
    return {**{key: value for key, value in plan.to_json().items() if key not in ELSEWHERE}, **limits}


def resources(graph: Graph) -> list[dict[str, Any]]:
    """The rows of a graph, in the order of their URNs."""
    return [_row(node) for _, node in sorted(graph.nodes.items())]


def canonical(document: dict[str, Any]) -> str:
    """The same text for the same plan, whatever ran first: for golden files and comparisons."""
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _row(node: RenderedResource) -> dict[str, Any]:
    return {
        "urn": node.urn,
        "type": node.type,
        "name": node.name,
        "parent": node.parent,
        "custom": node.custom,
        "inputs": _plain({key: value for key, value in node.inputs.items() if key != PICKLE}),
        "dependencies": list(node.dependencies),
        "property_dependencies": {
            key: list(urns) for key, urns in node.property_dependencies.items() if key != PICKLE and urns
        },
        "provider": node.provider,
        "protect": node.protect,
    }


def _plain(value: Any) -> Any:
    """A wire value for reading: secrets and unknowns as words, whole numbers without a point."""
    if isinstance(value, dict):
        return "[secret]" if SECRET in value else {key: _plain(item) for key, item in sorted(value.items())}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if value == UNKNOWN:
        return "[unknown]"
    return int(value) if isinstance(value, float) and value.is_integer() else value
