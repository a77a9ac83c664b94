"""`make demo`: from a stack file to a trained model on this computer, with the time of each phase."""

from __future__ import annotations

import json
import sys

from ops.clock import REAL
from ops.commands import plan, train, up
from ops.console.phases import Phase, Phases, row
from ops.console.terminal import Screen, write
from ops.errors import CommandError
from ops.jobs import progress as report
from ops.project import Project

STACK, JOB = "local", "mnist"


def demo(project: Project, console: Screen) -> None:
    """Prints the plan, brings the stack up, trains on it, and prints the result, the times and the next steps."""
    write(plan.text(plan.plan(project, STACK)))
    phases = Phases(console)
    up.up(project, STACK, phases, lambda _: True)
    phases.command(f"gpufleet train {JOB} --stack {STACK}")
    began = REAL.monotonic()
    with report.Progress(console, quiet=False) as progress:
        outcome = train.train(project, STACK, JOB, [], progress.event)
    document = report.document(project, STACK, outcome)
    phases.done.append(
        Phase("train", f"{JOB}: {document['steps']} steps on {document['world_size']} ranks", REAL.monotonic() - began)
    )
    write(report.text(document))
    write("\nphases")
    whole = [*set_up_phases(project), *phases.done]
    for phase in whole:
        write(row(phase))
    write(row(Phase("all", "", sum(phase.seconds for phase in whole))))
    write(
        f"\nlook at it    .venv/bin/gpufleet status {STACK}\n"
        f"go inside     ssh -F .gpufleet/local/{STACK}/ssh_config node-1\n"
        f"train again   .venv/bin/gpufleet train {JOB} --stack {STACK} --set optimizer.lr=0.05\n"
        f"take it down  make down"
    )


def set_up_phases(project: Project) -> list[Phase]:
    """The phases of the set-up before this demo, as it recorded them."""
    rows = json.loads((project.state / "setup.json").read_text())
    return [Phase(r["phase"], r["note"], r["seconds"]) for r in rows]


if __name__ == "__main__":
    try:
        demo(Project.find(), Screen())
    except CommandError as error:
        write(str(error), error=True)
        sys.exit(error.code)
