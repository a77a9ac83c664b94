"""`gpufleet up`: stack file → agreed price → nodes → configured → proven ready, as the chain of the public commands."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from infra.evaluate import described
from infra.handover import Handover
from infra.plan.model import Finding, Plan
from infra.printable import one_line
from infra.spec import StackFile
from ops import stack as cluster
from ops.clouds import base
from ops.clouds.base import Cloud
from ops.commands import plan
from ops.commands.plan import Planned
from ops.console.phases import Phases
from ops.engine import charts, processes, state_repair
from ops.engine import pulumi as engine
from ops.engine.pulumi import Engine
from ops.engine.state_repair import Row
from ops.errors import CommandError
from ops.nodes import ssh
from ops.nodes.ssh import LOST, NodeState
from ops.project import Project
from training import atomic

RECAP = re.compile(r"^(?P<node>\S+)\s*: ok=(?P<ok>\d+)\s+changed=(?P<changed>\d+)\s")

ARRIVE_SECONDS = 1800.0  # an eight-GPU node boots for minutes, and its driver, CUDA and libraries are gigabytes
ARRIVE_ASK_SECONDS = 5.0
HERE = {"ready", "not ready", "running"}  # what is not ready is told once it has been configured
SPOT_SECONDS = 300.0  # spot capacity that is there at all comes within a minute or two


def up(
    project: Project,
    stack: str,
    phases: Phases,
    agreed: Callable[[Planned], bool],
    *,
    wait: bool = True,
    renew: Sequence[str] = (),
) -> Handover:
    """Brings a stack up and returns its handover. Raises CommandError; a next `up` goes on from where this one ended.

    agreed: asked with the plan and its price before anything is made that costs money. wait: until the nodes are there,
    configured and proven ready; without it, they configure themselves. renew: groups to end first, and to ask for anew;
    of one that cannot be nothing at all is touched.
    """
    file = cluster.read(project, stack)
    decided = cluster.decide(file)
    cloud = base.of(project, decided)
    for group in renew:
        cloud.renewable(group)
    with go_on(stack):
        rows: Sequence[Row] = ()
        planned = _planned(project, stack) if cloud.billed else None
        if planned and not agreed(planned):
            raise CommandError("nothing was created")
        _heed(file, [*cloud.checked(), *charts.differing(decided)], phases)
        if planned:
            rows = planned.document["resources"]
            if wait:
                cloud.prepare(Handover.model_validate(planned.document["outputs"]["cluster"]))
            for group in renew:
                phases.note(cloud.renew(group))
        told = _declare(project, decided, cloud, rows, phases)
        cloud.delivered()
        if wait:
            told = _arrive(cloud, told, phases) if cloud.billed else cloud.discovered(told).told
            if not told.kubernetes:  # whose nodes are its own affair
                _configure(project, told, phases)
                _verify(told, phases)
    return told


def _planned(project: Project, stack: str) -> Planned:
    planned = plan.plan(project, stack)
    if planned.refused:
        bad = [finding for finding in planned.document["findings"] if finding["level"] == "error"]
        raise CommandError(*(plan.finding_line(planned, finding) for finding in bad))
    return planned


def _heed(file: StackFile, said: Sequence[Finding], phases: Phases) -> None:
    """What the cloud says of the plan: errors end it before anything is made, the rest is shown."""
    if bad := [one_line(described(finding, file)) for finding in said if finding.level == "error"]:
        raise CommandError(*bad)
    for finding in said:
        phases.note(f"{finding.level:<11} {described(finding, file)}")


@contextmanager
def go_on(stack: str) -> Iterator[None]:
    """Ctrl-C leaves nothing half-known: the engine's state is whole, and both ways on are named."""
    try:
        yield
    except KeyboardInterrupt:
        raise CommandError(
            f"interrupted: `gpufleet up {stack}` goes on from here, `gpufleet down {stack}` takes it all away", code=130
        ) from None


def _declare(project: Project, decided: Plan, cloud: Cloud, rows: Sequence[Row], phases: Phases) -> Handover:
    """Nodes that are planned one by one are counted; of others the engine only makes what will start them."""
    stack, names = decided.stack, {node.name for group in decided.groups for node in group.nodes}
    expected = len(names) or sum(row["custom"] for row in rows)
    deploying, done_names = Engine(project, stack), set()

    def done(_: str, name: str) -> None:
        if not names or name in names:
            done_names.add(name)
            phase.say(f"{len(done_names)} of {expected} changed")

    deploying.prepare()
    if cloud.billed:
        with phases.phase("recover") as phase:
            phase.say(f"{recover(cloud, deploying, rows)} found in {decided.place} that the engine did not know")
    phases.command(f"pulumi up --refresh --stack {stack}")
    with phases.phase("nodes" if names else "resources") as phase:
        deploying.up(project.log(stack, "nodes"), done)
        told = cluster.handover(project, stack)
        addresses = listed([node.address for node in told.nodes])
        phase.say(f"{len(told.nodes)} of {len(names)} up ({addresses})" if names else f"{len(done_names)} changed")
    _keep(project, told)
    return told


def recover(cloud: Cloud, engine: Engine, rows: Sequence[Row]) -> int:
    """Tells the engine of what a killed deployment left, and how many resources that were."""
    state = engine.state()
    whole, adopted = cloud.recovered(state, rows)
    if adopted or state_repair.unfinished(state):
        engine.replace_state(whole)
    return adopted


def _arrive(cloud: Cloud, told: Handover, phases: Phases) -> Handover:
    """Waits until every node is there and has configured itself, or has had its time for that.

    Raises CommandError when nodes do not come.
    """
    with phases.phase("nodes") as phase:
        began, relieved = time.monotonic(), False
        while True:
            now = cloud.discovered(told)
            states = ssh.states(now.told)
            waiting = [each for each in (*states, *now.others) if each.state not in HERE]
            phase.say(f"{len(states) + len(now.others) - len(waiting)} here, waiting for {_counted(waiting)}")
            if not waiting:
                phase.say(f"{len(states) + len(now.others)} here")
                return now.told
            if any(each.state == LOST for each in waiting):
                break
            waited = time.monotonic() - began
            if waited > ARRIVE_SECONDS:
                break
            if waited > SPOT_SECONDS and not relieved:
                relieved = True
                for line in cloud.fall_back():
                    phases.note(line)
            time.sleep(ARRIVE_ASK_SECONDS)
        if lost := [each for each in waiting if each.state != "unconfigured"]:
            gone = [each for each in lost if each.state == LOST] or lost  # the rest may only be on its way
            raise CommandError(*(f"{each.name} is {each.state}: {each.reason}" for each in gone))
        return now.told


def _counted(waiting: Sequence[NodeState]) -> str:
    counts = Counter(f"{each.group} {each.state}" for each in waiting)
    return ", ".join(f"{number} {what}" for what, number in sorted(counts.items()))


def _configure(project: Project, told: Handover, phases: Phases) -> None:
    log, recap = project.log(told.stack, "configure"), {}

    def line(text: str) -> None:
        if text.startswith("TASK ["):
            phase.say(text[6:].partition("]")[0])
        elif found := RECAP.match(text):
            recap[found["node"]] = found

    phases.command("ansible-playbook -i playbooks/inventory playbooks/gpu_node.yml")
    with phases.phase("configure") as phase:
        code = processes.run(
            ["ansible-playbook", "-i", "playbooks/inventory", "playbooks/gpu_node.yml"],
            env=playbook_environment(project, told),
            cwd=project.root,
            log=log,
            on_line=line,
        )
        if code:
            raise CommandError(*_fatal(log), f"the whole log: {log}")
        phase.say(_recap_note(recap))


def playbook_environment(project: Project, told: Handover) -> dict[str, str]:
    """Ansible's own settings and the handover it works from (a file, so that the play asks no engine)."""
    _keep(project, told)
    return {
        **engine.environment(project),
        "GPUFLEET_STACK": told.stack,
        "GPUFLEET_HANDOVER": str(project.handover(told.stack)),
        "ANSIBLE_CONFIG": str(project.root / "playbooks" / "ansible.cfg"),
        "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",  # so that a failed task's message can be told alone
        "ANSIBLE_NOCOLOR": "1",
        "LC_ALL": "C.UTF-8",  # Ansible refuses to start without a UTF-8 locale
    }


def _keep(project: Project, told: Handover) -> None:
    """What `status` and the next play work from, and since when it costs money."""
    file, since = project.handover(told.stack), project.since(told.stack)
    file.parent.mkdir(parents=True, exist_ok=True)
    atomic.write(file, told.model_dump_json(indent=1).encode())
    if not since.is_file():
        atomic.write(since, str(time.time()).encode())


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
            message = str(json.loads(match["rest"]).get("msg", match["rest"]))
        except (ValueError, RecursionError, AttributeError):
            message = match["rest"]
        found.append(one_line(f"{match['node']}: {'; '.join(filter(str.strip, message.splitlines()))}"))
    return found or processes.tail(log)


def _verify(told: Handover, phases: Phases) -> None:
    with phases.phase("verify") as phase:
        states = ssh.states(told)
        if bad := [f"{s.name} is {s.state}: {s.reason}" for s in states if s.state != "ready"]:
            raise CommandError(*bad)
        phase.say(f"{len(states)} ready")


def listed(names: list[str], most: int = 4) -> str:
    """A list short enough for one line."""
    return ", ".join(names[:most]) + (f", … {names[-1]}" if len(names) > most else "")
