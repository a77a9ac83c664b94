"""`gpufleet doctor`: every node checks itself again; who is ready, who is not, why, and what to do about it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from infra.handover import Handover
from ops import stack as stacks
from ops import untrusted
from ops.console.phases import Phases
from ops.console.terminal import Json, Screen, Stack, show
from ops.engine import processes
from ops.errors import CommandError
from ops.nodes import playbooks
from ops.project import Project
from ops.untrusted import REPORT_BYTES, Check, Report, UnreadableError

Document = dict[str, Any]

VERIFY = ("ansible-playbook", "-i", "playbooks/inventory", "playbooks/verify.yml")
ALL_REDUCE = ("-e", '{"all_reduce_wanted": true}')
NODES_FAILED = {0, 2, 4}  # ansible-playbook: all is well, a task failed on a node, a node was unreachable


def command(
    stack: Stack,
    all_reduce: Annotated[
        bool, typer.Option("--all-reduce", help="run an all-reduce on idle nodes and check the fabric's byte counters")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run every node's readiness checks again; list what failed and what to do about it. Jobs keep running."""
    document = doctor(Project.find(), stack, Phases(Screen(), quiet=as_json), all_reduce=all_reduce)
    show(document, as_json, text)
    if not all(node["ready"] for node in document["nodes"]):
        raise typer.Exit(1)


def doctor(project: Project, stack: str, phases: Phases, *, all_reduce: bool = False) -> Document:
    """The document of `--json`. Raises CommandError when the stack is not up, or the checks could not be asked for.

    all_reduce: let all idle nodes sum numbers together, too, and count the bytes on the fabric.
    """
    told = stacks.discovered(project, stack).told
    asked = [*VERIFY, *(ALL_REDUCE if all_reduce else ())]
    phases.command(" ".join(asked))
    with phases.phase("verify") as phase:
        log = project.log(stack, "doctor")
        stacks.save(project, told)
        environment = playbooks.environment(project, told)
        code = processes.run(asked, env=environment, cwd=project.root, log=log, on_line=lambda _: None)
        if code not in NODES_FAILED:
            raise CommandError(*processes.tail(log), f"the whole log: {log}")
        document = read(project, told)
        ready = sum(node["ready"] for node in document["nodes"])
        phase.say(f"{ready} of {len(document['nodes'])} ready")
    return document


def read(project: Project, told: Handover) -> Document:
    """What verify.yml kept of each node. A node without a report is not ready."""
    reports = [_kept(project.reports(told.stack) / f"{node.name}.json") for node in told.nodes]
    return {
        "stack": told.stack,
        "cloud": told.cloud,
        "nodes": [
            {"name": node.name, "group": node.group, **report.model_dump(mode="json")}
            for node, report in zip(told.nodes, reports, strict=True)
        ],
    }


def _kept(file: Path) -> Report:
    """A node's report; in the place of one that is not there, or is none, a report that says so."""
    try:
        with file.open("rb") as report:
            return untrusted.parsed(Report, report.read(REPORT_BYTES + 1))
    except FileNotFoundError:
        fault = "no report"
    except UnreadableError as reason:
        fault = f"an unreadable report: {reason}"
    return Report(ready=False, checks=(Check(name="checks", ok=False, detail=fault),))


def text(document: Document) -> str:
    """A line a node, and below it one for each check that failed."""
    lines = [f"{document['stack']} · {document['cloud']}"]
    for node in document["nodes"]:
        failed = [check for check in node["checks"] if not check["ok"]]
        passed = len(node["checks"]) - len(failed)
        lines.append(f"  {node['name']:<12} {'ready' if node['ready'] else 'NOT READY':<10} {passed} checks passed")
        lines += [f"    {check['name']:<12} {check['detail']}" for check in failed]
    return "\n".join(lines)
