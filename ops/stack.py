"""A stack: its checked file and plan before it is up, its handover afterwards."""

from __future__ import annotations

from pydantic import ValidationError

from infra import evaluate, spec
from infra.handover import Handover
from infra.plan.model import Plan
from infra.printable import one_line
from infra.spec import SpecError, StackFile
from ops.clock import REAL, Clock
from ops.clouds import base
from ops.clouds.base import Discovered
from ops.engine.pulumi import Engine
from ops.errors import CommandError
from ops.project import Project
from training import atomic

MOST_LINES = 200  # of mistakes in one message: a file may have tens of thousands


def read(project: Project, stack: str) -> StackFile:
    """The stack file, checked. Raises CommandError (exit code 2) with one line for every mistake in it."""
    try:
        return spec.load(project.root, stack)
    except SpecError as error:
        lines = list(map(str, error.problems))
        more = [f"… and {len(lines) - MOST_LINES:,} more"] if len(lines) > MOST_LINES else []
        raise CommandError(*lines[:MOST_LINES], *more, code=2) from None


def decide(file: StackFile) -> Plan:
    """The finished plan. Raises CommandError (exit code 1) with one line for every rule that refuses it."""
    decided = evaluate.decide(file)
    if decided.errors:
        raise CommandError(*(evaluate.described(finding, file) for finding in decided.errors))
    return decided


def handover(project: Project, stack: str) -> Handover:
    """The handover of the last `up`. Raises CommandError when the stack is not up.

    The saved file is used as long as the engine's state is no newer: starting the engine takes longer than the rest of
    `status`. With a backend elsewhere the engine is always started.
    """
    file, state = project.handover(stack), project.engine_state(stack)
    try:
        if file.is_file() and state.is_file() and state.stat().st_mtime_ns < file.stat().st_mtime_ns:
            return Handover.model_validate_json(file.read_bytes())
        output = Engine(project, stack).output("cluster")
        if output is None:
            raise CommandError(f"stack {stack} is not up: start it with `gpufleet up {stack}`")
        return Handover.model_validate(output)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        why = one_line(f"{'.'.join(map(str, first['loc']))}: {first['msg']}")
        raise CommandError(
            f"the handover of {stack} cannot be read: {why}; `gpufleet up {stack}` rewrites it"
        ) from None


def save(project: Project, handover: Handover, clock: Clock = REAL) -> None:
    """Writes the handover to the file that `status` and playbooks read, and since when the stack costs money."""
    file, since = project.handover(handover.stack), project.since(handover.stack)
    file.parent.mkdir(parents=True, exist_ok=True)
    atomic.write(file, handover.model_dump_json(indent=1).encode())
    if not since.is_file():
        atomic.write(since, str(clock.now()).encode())


def discovered(project: Project, stack: str) -> Discovered:
    """The handover with the current nodes, since fleets have no fixed members. Raises CommandError."""
    decided = evaluate.decide(read(project, stack))
    return base.of(project, decided).discovered(handover(project, stack))
