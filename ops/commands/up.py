"""`gpufleet up`: stack file → agreed price → nodes → configured → proven ready, as the chain of the public commands."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer

from infra.evaluate import described
from infra.handover import Handover
from infra.plan.model import Finding, Plan
from infra.printable import one_line
from infra.spec import StackFile
from ops import stack as stacks
from ops.clouds import base
from ops.clouds.base import Cloud
from ops.commands import plan
from ops.commands.plan import Planned
from ops.console.phases import Phases
from ops.console.terminal import Json, Screen, Stack, Yes, confirmed, write, write_json
from ops.engine import charts, state_repair
from ops.engine.pulumi import Engine
from ops.engine.state_repair import Row
from ops.errors import CommandError
from ops.nodes import playbooks, ssh
from ops.nodes.ssh import LOST, NodeState
from ops.project import Project

ARRIVE_SECONDS = 1800.0  # an eight-GPU node boots for minutes, and its driver, CUDA and libraries are gigabytes
ARRIVE_ASK_SECONDS = 5.0
HERE = {"ready", "not ready", "running"}  # what is not ready is told once it has been configured
SPOT_SECONDS = 300.0  # spot capacity that is there at all comes within a minute or two


def command(
    stack: Stack,
    yes: Yes = False,
    wait: Annotated[bool, typer.Option(help="until the nodes are up, configured and verified")] = True,
    renew: Annotated[
        list[str] | None, typer.Option(metavar="GROUP", help="end this group's nodes and request all of them again")
    ] = None,
    as_json: Json = False,
) -> None:
    """Create or repair a stack's nodes, configure them and verify them. Shows the price first, and asks."""

    def agreed(planned: Planned) -> bool:
        write(plan.text(planned), error=as_json)
        cost = planned.decided.cost
        most = f", at most {cost.hourly_max:.2f}" if cost.hourly_max > cost.hourly else ""
        ends = f", after ending what is left of {', '.join(renew)}" if renew else ""
        return yes or confirmed(f"create this for {cost.hourly:.2f} {cost.currency}/h{most}{ends}?")

    phases = Phases(Screen(), quiet=as_json)
    handover = up(Project.find(), stack, phases, agreed, wait=wait, renew=renew or ())
    if as_json:
        write_json({"stack": stack, "phases": phases.as_json(), "cluster": handover.model_dump()})


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
    file = stacks.read(project, stack)
    decided = stacks.decide(file)
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
                stacks.save(project, told)
                playbooks.configure(project, told, phases)
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
        told = stacks.handover(project, stack)
        addresses = listed([node.address for node in told.nodes])
        phase.say(f"{len(told.nodes)} of {len(names)} up ({addresses})" if names else f"{len(done_names)} changed")
    stacks.save(project, told)
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


def _verify(told: Handover, phases: Phases) -> None:
    with phases.phase("verify") as phase:
        states = ssh.states(told)
        if bad := [f"{s.name} is {s.state}: {s.reason}" for s in states if s.state != "ready"]:
            raise CommandError(*bad)
        phase.say(f"{len(states)} ready")


def listed(names: list[str], most: int = 4) -> str:
    """A list short enough for one line."""
    return ", ".join(names[:most]) + (f", … {names[-1]}" if len(names) > most else "")
