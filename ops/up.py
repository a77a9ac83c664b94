"""`gpufleet up`: stack file → nodes → configured → proven ready, as the chain of the public commands."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from infra.handover import Handover
from infra.plan.plan import Plan
from ops import cluster, command, engine, nodes
from ops.failure import Failure
from ops.phases import Phases
from ops.project import Project

RECAP = re.compile(r"^(?P<node>\S+)\s*: ok=(?P<ok>\d+)\s+changed=(?P<changed>\d+)\s")


def up(project: Project, stack: str, phases: Phases) -> Handover:
    """Brings a stack up and returns its handover. Raises Failure; a next `up` goes on from where this one ended."""
    decided = cluster.decide(cluster.read(project, stack))
    if decided.cloud != "local":
        raise Failure(
            f"`gpufleet up` does not serve {decided.cloud} yet: `gpufleet plan {stack}` shows what it would be"
        )
    with go_on(stack):
        told = _declare(project, decided, phases)
        _configure(project, told, phases)
        _verify(told, phases)
    return told


@contextmanager
def go_on(stack: str) -> Iterator[None]:
    """Ctrl-C leaves nothing half-known: the engine's state is whole, and both ways on are named."""
    try:
        yield
    except KeyboardInterrupt:
        raise Failure(
            f"interrupted: `gpufleet up {stack}` goes on from here, `gpufleet down {stack}` takes it all away", code=130
        ) from None


def _declare(project: Project, decided: Plan, phases: Phases) -> Handover:
    stack, names = decided.stack, {node.name for group in decided.groups for node in group.nodes}
    made: set[str] = set()

    def done(_: str, name: str) -> None:
        if name in names:
            made.add(name)
            phase.say(f"{len(made)} of {len(names)} changed")

    phases.command(f"pulumi up --stack {stack}")
    with phases.phase("nodes") as phase:
        engine.Engine(project, stack).up(project.log(stack, "nodes"), done)
        told = cluster.handover(project, stack)
        phase.say(f"{len(told.nodes)} of {len(names)} up ({listed([node.address for node in told.nodes])})")
    return told


def _configure(project: Project, told: Handover, phases: Phases) -> None:
    log, recap = project.log(told.stack, "configure"), {}

    def line(text: str) -> None:
        if text.startswith("TASK ["):
            phase.say(text[6:].partition("]")[0])
        elif found := RECAP.match(text):
            recap[found["node"]] = found

    phases.command("ansible-playbook -i playbooks/inventory playbooks/gpu_node.yml")
    with phases.phase("configure") as phase:
        code = command.run(
            ["ansible-playbook", "-i", "playbooks/inventory", "playbooks/gpu_node.yml"],
            env=playbook_environment(project, told),
            cwd=project.root,
            log=log,
            on_line=line,
        )
        if code:
            raise Failure(*_fatal(log), f"the whole log: {log}")
        phase.say(_recap_note(recap))


def playbook_environment(project: Project, told: Handover) -> dict[str, str]:
    """Ansible's own settings and the handover it works from (a file, so that the play asks no engine)."""
    file = project.handover(told.stack)
    file.parent.mkdir(exist_ok=True)
    file.write_text(told.model_dump_json(indent=1))
    if not project.since(told.stack).is_file():
        project.since(told.stack).write_text(str(time.time()))
    return {
        **engine.environment(project),
        "GPUFLEET_STACK": told.stack,
        "GPUFLEET_HANDOVER": str(file),
        "ANSIBLE_CONFIG": str(project.root / "playbooks" / "ansible.cfg"),
        "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",  # so that a failed task's message can be told alone
        "ANSIBLE_NOCOLOR": "1",
        "LC_ALL": "C.UTF-8",  # Ansible refuses to start without a UTF-8 locale
    }


def _recap_note(recap: dict[str, re.Match[str]]) -> str:
    counts = {(r["ok"], r["changed"]) for r in recap.values()}
    if len(counts) == 1:
        ok, changed = counts.pop()
        return f"{len(recap)} nodes, each ok={ok} changed={changed}"
    return " · ".join(f"{node} ok={r['ok']} changed={r['changed']}" for node, r in sorted(recap.items()))


def _fatal(log: Path) -> list[str]:
    """The playbook's own error lines: one a node that failed, with the message of the task that failed it."""
    text = log.read_text(errors="replace")
    found = []
    for match in re.finditer(r"^(?:fatal|failed): \[(?P<node>[^\]]+)\].*?=> (?P<rest>.*)$", text, re.MULTILINE):
        try:
            message = json.loads(match["rest"]).get("msg", match["rest"])
        except json.JSONDecodeError:
            message = match["rest"]
        found.append(f"{match['node']}: {message}")
    return found or command.tail(log)


def _verify(told: Handover, phases: Phases) -> None:
    with phases.phase("verify") as phase:
        states = nodes.states(told)
        if bad := [f"{s.name} is {s.state}: {s.reason}" for s in states if s.state != "ready"]:
            raise Failure(*bad)
        phase.say(f"{len(states)} ready")


def listed(names: list[str], most: int = 4) -> str:
    """A list short enough for one line."""
    return ", ".join(names[:most]) + (f", … {names[-1]}" if len(names) > most else "")
