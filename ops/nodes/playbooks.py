"""Ansible's playbooks on the nodes of a stack: their environment, the run that configures nodes, and its errors."""

from __future__ import annotations

import json
import re
from pathlib import Path

from infra.handover import Handover
from infra.printable import one_line
from ops.console.phases import Phases
from ops.engine import processes, pulumi
from ops.errors import CommandError
from ops.project import Project

CONFIGURE = ("ansible-playbook", "-i", "playbooks/inventory", "playbooks/gpu_node.yml")
RECAP = re.compile(r"^(?P<node>\S+)\s*: ok=(?P<ok>\d+)\s+changed=(?P<changed>\d+)\s")


def environment(project: Project, handover: Handover) -> dict[str, str]:
    """Ansible's own settings, and the saved handover as the playbook's input, so that it does not start the engine."""
    return {
        **pulumi.environment(project),
        "GPUFLEET_STACK": handover.stack,
        "GPUFLEET_HANDOVER": str(project.handover(handover.stack)),
        "ANSIBLE_CONFIG": str(project.root / "playbooks" / "ansible.cfg"),
        "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",  # so that a failed task's message can be shown alone
        "ANSIBLE_NOCOLOR": "1",
        "LC_ALL": "C.UTF-8",  # Ansible refuses to start without a UTF-8 locale
    }


def configure(project: Project, handover: Handover, phases: Phases) -> None:
    """Runs gpu_node.yml on every node. Raises CommandError with the messages of the tasks that failed."""
    log, recap = project.log(handover.stack, "configure"), {}

    def line(text: str) -> None:
        if text.startswith("TASK ["):
            phase.say(text[6:].partition("]")[0])
        elif counts := RECAP.match(text):
            recap[counts["node"]] = counts

    phases.command(" ".join(CONFIGURE))
    with phases.phase("configure") as phase:
        code = processes.run(CONFIGURE, env=environment(project, handover), cwd=project.root, log=log, on_line=line)
        if code:
            raise CommandError(*failed_tasks(log), f"the whole log: {log}")
        phase.say(_recap_note(recap))


def _recap_note(recap: dict[str, re.Match[str]]) -> str:
    counts = {(r["ok"], r["changed"]) for r in recap.values()}
    if len(counts) == 1:
        ok, changed = counts.pop()
        return f"{len(recap)} nodes, each ok={ok} changed={changed}"
    return " · ".join(f"{node} ok={r['ok']} changed={r['changed']}" for node, r in sorted(recap.items()))


def failed_tasks(log: Path) -> list[str]:
    """One line for each failed node, with the message of the task that failed on it."""
    text = log.read_text(errors="replace")
    messages = []
    for match in re.finditer(r"^(?:fatal|failed): \[(?P<node>[^\]]+)\].*?=> (?P<rest>.*)$", text, re.MULTILINE):
        try:
            message = str(json.loads(match["rest"]).get("msg", match["rest"]))
        except (ValueError, RecursionError, AttributeError):
            message = match["rest"]
        messages.append(one_line(f"{match['node']}: {'; '.join(filter(str.strip, message.splitlines()))}"))
    return messages or processes.tail(log)
