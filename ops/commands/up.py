"""`gpufleet up`: stack file → confirmed price → nodes → configured → verified, as a chain of public commands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer

from infra.evaluate import described
from infra.handover import Handover
from infra.plan.model import Finding, Plan
from infra.plan.summary import summary_of
from infra.printable import one_line
from infra.spec import StackFile
from ops import stack as stacks
from ops.clock import REAL, Clock
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

BOOT_SECONDS = 1800.0  # an eight-GPU node boots for minutes, and installs gigabytes of driver, CUDA and libraries
POLL_SECONDS = 5.0
PRESENT = {"ready", "not ready", "running"}  # whether a node is ready is checked after it was configured
SPOT_SECONDS = 300.0  # available spot capacity starts within a minute or two


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

    def confirm(planned: Planned) -> bool:
        write(plan.text(planned), error=as_json)
        cost = planned.decided.cost
        most = f", at most {cost.hourly_max:.2f}" if cost.hourly_max > cost.hourly else ""
        ends = f", after ending what is left of {', '.join(renew)}" if renew else ""
        return yes or confirmed(f"create this for {cost.hourly:.2f} {cost.currency}/h{most}{ends}?")

    phases = Phases(Screen(), quiet=as_json)
    handover = up(Project.find(), stack, phases, confirm, wait=wait, renew=renew or ())
    if as_json:
        write_json({"stack": stack, "phases": phases.as_json(), "cluster": handover.model_dump()})


def up(
    project: Project,
    stack: str,
    phases: Phases,
    confirm: Callable[[Planned], bool],
    *,
    wait: bool = True,
    renew: Sequence[str] = (),
) -> Handover:
    """Brings a stack up and returns its handover. Raises CommandError; a re-run resumes.

    confirm: called with the plan and its price before anything is created that costs money. wait: until the nodes are
    up, configured and verified; otherwise they configure themselves. renew: groups to terminate first, and to request
    again; if one of them cannot be renewed, nothing is touched.
    """
    file = stacks.read(project, stack)
    decided = stacks.decide(file)
    cloud = base.of(project, decided)
    for group in renew:
        cloud.renewable(group)
    with resumable(stack):
        rows: Sequence[Row] = ()
        planned = _planned(project, stack) if cloud.billed else None
        if planned and not confirm(planned):
            raise CommandError("nothing was created")
        _show_findings(file, [*cloud.findings(), *charts.differing(decided)], phases)
        if planned:
            rows = planned.document["resources"]
            if wait:
                cloud.prepare(Handover.model_validate(planned.document["outputs"]["cluster"]))
            for group in renew:
                phases.note(cloud.renew(group))
        handover = _declare(project, decided, cloud, rows, phases)
        cloud.require_capacity()
        if wait:
            handover = _wait_for_nodes(cloud, handover, phases) if cloud.billed else cloud.discovered(handover).handover
            if not handover.kubernetes:  # whose nodes are configured by their owner
                stacks.save(project, handover)
                playbooks.configure(project, handover, phases)
                _verify(handover, phases)
    return handover


def _planned(project: Project, stack: str) -> Planned:
    planned = plan.plan(project, stack)
    if planned.refused:
        bad = [finding for finding in planned.document["findings"] if finding["level"] == "error"]
        raise CommandError(*(plan.finding_line(planned, finding) for finding in bad))
    return planned


def _show_findings(file: StackFile, findings: Sequence[Finding], phases: Phases) -> None:
    """Shows the account's findings on the plan. Raises CommandError for errors, before anything is created."""
    if errors := [one_line(described(finding, file)) for finding in findings if finding.level == "error"]:
        raise CommandError(*errors)
    for finding in findings:
        phases.note(f"{finding.level:<11} {described(finding, file)}")


@contextmanager
def resumable(stack: str) -> Iterator[None]:
    """Turns Ctrl-C into an error that names the next commands: the engine's state is complete by then."""
    try:
        yield
    except KeyboardInterrupt:
        raise CommandError(
            f"interrupted: re-run `gpufleet up {stack}` to resume, `gpufleet down {stack}` deletes it all", code=130
        ) from None


def _declare(project: Project, decided: Plan, cloud: Cloud, rows: Sequence[Row], phases: Phases) -> Handover:
    """Deploys. Counts nodes that are planned one by one; otherwise resources, since fleets start the nodes."""
    stack, names = decided.stack, {node.name for group in decided.groups for node in group.nodes}
    expected = len(names) or sum(row["custom"] for row in rows)
    engine, changed = Engine(project, stack), set()

    def on_done(_: str, name: str) -> None:
        if not names or name in names:
            changed.add(name)
            phase.say(f"{len(changed)} of {expected} changed")

    engine.prepare()
    if cloud.billed:
        with phases.phase("recover") as phase:
            phase.say(f"{recover(cloud, engine, rows)} found in {summary_of(decided).location} and added to the state")
    phases.command(f"pulumi up --refresh --stack {stack}")
    with phases.phase("nodes" if names else "resources") as phase:
        engine.up(project.log(stack, "nodes"), on_done)
        handover = stacks.handover(project, stack)
        addresses = listed([node.address for node in handover.nodes])
        phase.say(f"{len(handover.nodes)} of {len(names)} up ({addresses})" if names else f"{len(changed)} changed")
    stacks.save(project, handover)
    return handover


def recover(cloud: Cloud, engine: Engine, rows: Sequence[Row]) -> int:
    """Imports into the state what a killed deployment left; returns how many resources that were."""
    state = engine.state()
    whole, adopted = cloud.recovered(state, rows)
    if adopted or state_repair.unfinished(state):
        engine.replace_state(whole)
    return adopted


def _wait_for_nodes(cloud: Cloud, handover: Handover, phases: Phases, clock: Clock = REAL) -> Handover:
    """Waits until every node is up and has configured itself, or has had its time for that.

    Raises CommandError when nodes are missing.
    """
    with phases.phase("nodes") as phase:
        began, fell_back = clock.monotonic(), False
        while True:
            current = cloud.discovered(handover)
            states = ssh.states(current.handover)
            waiting = [state for state in (*states, *current.others) if state.state not in PRESENT]
            phase.say(f"{len(states) + len(current.others) - len(waiting)} up, waiting for {_counted(waiting)}")
            if not waiting:
                phase.say(f"{len(states) + len(current.others)} up")
                return current.handover
            if any(state.state == LOST for state in waiting):
                break
            waited = clock.monotonic() - began
            if waited > BOOT_SECONDS:
                break
            if waited > SPOT_SECONDS and not fell_back:
                fell_back = True
                for line in cloud.fall_back():
                    phases.note(line)
            clock.sleep(POLL_SECONDS)
        if lost := [state for state in waiting if state.state != "unconfigured"]:
            final = [state for state in lost if state.state == LOST] or lost  # the rest may still be starting
            raise CommandError(*(f"{state.name} is {state.state}: {state.reason}" for state in final))
        return current.handover


def _counted(waiting: Sequence[NodeState]) -> str:
    counts = Counter(f"{state.group} {state.state}" for state in waiting)
    return ", ".join(f"{number} {what}" for what, number in sorted(counts.items()))


def _verify(handover: Handover, phases: Phases) -> None:
    with phases.phase("verify") as phase:
        states = ssh.states(handover)
        if not_ready := [f"{s.name} is {s.state}: {s.reason}" for s in states if s.state != "ready"]:
            raise CommandError(*not_ready)
        phase.say(f"{len(states)} ready")


def listed(names: list[str], most: int = 4) -> str:
    """A list short enough for one line."""
    return ", ".join(names[:most]) + (f", … {names[-1]}" if len(names) > most else "")
