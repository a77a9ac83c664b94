"""`gpufleet sweep`: what of a stack exists and is in no state, listed, and on demand removed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from ops.clouds import base
from ops.commands import plan
from ops.console.phases import Phases
from ops.console.terminal import Json, Screen, Stack, Yes, confirmed, show, write
from ops.engine.pulumi import Engine
from ops.engine.state_repair import EMPTY
from ops.errors import CommandError
from ops.project import Project

Document = dict[str, Any]


def command(
    stack: Stack,
    delete: Annotated[bool, typer.Option("--delete", help="delete them, after asking")] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """List orphaned resources: tagged, but not in the Pulumi state. With --delete, delete them."""

    def agreed(document: dict[str, Any]) -> bool:
        write(text(document), error=True)
        return yes or confirmed(f"delete these {len(document['strays'])} for good?")

    phases = Phases(Screen(), quiet=as_json)
    show(sweep(Project.find(), stack, phases, agreed if delete else None), as_json, text)


def sweep(project: Project, stack: str, phases: Phases, agreed: Callable[[Document], bool] | None) -> Document:
    """The document of `--json`: what there is too much. agreed: asked before it is removed; None removes nothing.

    One path with recovery: the engine is told of the strays, and then destroys them in their order. Works without any
    state. Raises CommandError when something will not go.
    """
    planned = plan.plan(project, stack)
    cloud, engine = base.of(project, planned.decided), Engine(project, stack)
    state = engine.state() if engine.exists() else EMPTY
    found: Document = {"stack": stack, "strays": cloud.strays(state), "removed": []}
    if not found["strays"] or agreed is None or not agreed(found):
        return found
    engine.prepare()
    with phases.phase("claim") as phase:
        removable = [row for row in planned.document["resources"] if not row["protect"]]  # the next `up` finds the rest
        state, urns = cloud.claimed(engine.state(), removable)
        engine.replace_state(state)
        phase.say(f"{len(urns)} of {len(found['strays'])} told to the engine")
    if urns:
        phases.command(f"pulumi destroy --refresh --stack {stack} --target …")
        with phases.phase("destroy") as phase:
            gone: list[str] = []
            targets = [f"--target={urn}" for urn in urns]
            engine.destroy(
                project.log(stack, "sweep"), lambda _, name: gone.append(name), refresh=True, options=targets
            )
            phase.say(f"{len(gone)} resources gone")
    with phases.phase("sweep") as phase:
        state = engine.state()
        cloud.clear(state, phase)
        if left := cloud.strays(state):
            raise CommandError("does not go:", *left, f"the whole log: {project.log(stack, 'sweep')}")
        phase.say("nothing left behind")
    return {**found, "strays": [], "removed": found["strays"]}


def text(told: Document) -> str:
    if told["removed"]:
        return f"{len(told['removed'])} strays of {told['stack']} removed"
    if not told["strays"]:
        return f"{told['stack']}: nothing but what its state knows"
    lines = [f"  {stray}" for stray in told["strays"]]
    return "\n".join([f"{told['stack']}: {len(lines)} that no state knows", *lines])
