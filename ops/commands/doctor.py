"""`gpufleet doctor`: runs every node's readiness checks again, and lists what failed and what to do about it."""

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
NODES_FAILED = {0, 2, 4}  # ansible-playbook: success, a task failed on a node, a node was unreachable


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
    """The document of `--json`. Raises CommandError when the stack is not up, or the checks could not be run.

    all_reduce: also run an all-reduce on idle nodes and check the fabric's byte counters.
    """
    handover = stacks.discovered(project, stack).handover
    arguments = [*VERIFY, *(ALL_REDUCE if all_reduce else ())]
    phases.command(" ".join(arguments))
    with phases.phase("verify") as phase:
        log = project.log(stack, "doctor")
        stacks.save(project, handover)
        environment = playbooks.environment(project, handover)
        code = processes.run(arguments, env=environment, cwd=project.root, log=log, on_line=lambda _: None)
        if code not in NODES_FAILED:
            raise CommandError(*processes.tail(log), f"the whole log: {log}")
        document = read(project, handover)
        ready = sum(node["ready"] for node in document["nodes"])
        phase.say(f"{ready} of {len(document['nodes'])} ready")
    return document


def read(project: Project, handover: Handover) -> Document:
    """The reports that verify.yml fetched. A node without a report is not ready."""
    reports = [_report(project.reports(handover.stack) / f"{node.name}.json") for node in handover.nodes]
    return {
        "stack": handover.stack,
        "cloud": handover.cloud,
        "nodes": [
            {"name": node.name, "group": node.group, **report.model_dump(mode="json")}
            for node, report in zip(handover.nodes, reports, strict=True)
        ],
    }


def _report(file: Path) -> Report:
    """A node's report; a missing or invalid one is replaced by a report of that fault."""
    try:
        with file.open("rb") as report:
            return untrusted.parsed(Report, report.read(REPORT_BYTES + 1))
    except FileNotFoundError:
        reason = "no report"
    except UnreadableError as error:
        reason = f"an unreadable report: {error}"
    return Report(ready=False, checks=(Check(name="checks", ok=False, detail=reason),))


def text(document: Document) -> str:
    """A line a node, and below it one for each check that failed."""
    lines = [f"{document['stack']} · {document['cloud']}"]
    for node in document["nodes"]:
        failed = [check for check in node["checks"] if not check["ok"]]
        passed = len(node["checks"]) - len(failed)
        lines.append(f"  {node['name']:<12} {'ready' if node['ready'] else 'NOT READY':<10} {passed} checks passed")
        lines += [f"    {check['name']:<12} {check['detail']}" for check in failed]
    return "\n".join(lines)
