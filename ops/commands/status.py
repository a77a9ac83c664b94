"""`gpufleet status`: each node's state, the newest run, and the cost of the cluster."""

from __future__ import annotations

from typing import Any

from infra import evaluate
from ops import stack as stacks
from ops.clock import REAL, Clock
from ops.console.terminal import Json, Stack, show
from ops.jobs import runs
from ops.nodes import ssh
from ops.project import Project

Document = dict[str, Any]


def command(stack: Stack, as_json: Json = False) -> None:
    """Show each node's state, the newest run and the cost."""
    show(status(Project.find(), stack), as_json, text)


def status(project: Project, stack: str, clock: Clock = REAL) -> Document:
    """The document of `--json`. Raises CommandError when the stack file is wrong or the stack is not up."""
    cost = evaluate.decide(stacks.read(project, stack)).cost
    hourly = None if cost.unknown else cost.hourly
    current = stacks.discovered(project, stack)
    newest = runs.newest(project, stack)
    return {
        "stack": stack,
        "cloud": current.handover.cloud,
        "nodes": [state.as_json() for state in (*ssh.states(current.handover), *current.others)],
        "run": newest.as_json() if newest else None,
        "cost": {
            "hourly": hourly,
            "spent": None if hourly is None else round(hourly * hours_up(project, stack, clock), 2),
            "currency": cost.currency,
            "unknown": cost.unknown,
        },
    }


def hours_up(project: Project, stack: str, clock: Clock) -> float:
    """Hours since the stack's first `up`."""
    since = project.since(stack)
    return (clock.now() - float(since.read_text())) / 3600 if since.is_file() else 0.0


def text(document: Document) -> str:
    rows = [(node["name"], f"{node['address']:<16} {node['state']:<12} {node['reason']}") for node in document["nodes"]]
    rows += [("run", run_line(document["run"]))]
    rows += [("cost", cost_line(document["cost"]))]
    return "\n".join(
        [f"{document['stack']} · {document['cloud']}", *(f"  {name:<12} {value}".rstrip() for name, value in rows)]
    )


def cost_line(cost: Document) -> str:
    if cost["hourly"] is None:
        return f"unknown: {cost['unknown']}"
    return "{hourly:.2f} {currency}/h · {spent:.2f} {currency} since it came up".format(**cost)


def run_line(run: Document | None) -> str:
    if run is None:
        return "none yet"
    if run["state"] != "finished":
        at = f" at step {run['step']} of {run['steps']}" if "step" in run else ""
        return f"{run['name']} {run['state']}{at}"
    accuracy = "" if run["accuracy"] is None else f"accuracy {100 * run['accuracy']:.1f} % "
    return f"{run['name']} finished: {accuracy}in {run['seconds']:.0f} s"
