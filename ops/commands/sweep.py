"""`gpufleet sweep`: lists orphaned resources of a stack (tagged, but not in the Pulumi state), and deletes them."""

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

    def confirm(document: dict[str, Any]) -> bool:
        write(text(document), error=True)
        return yes or confirmed(f"delete these {len(document['strays'])} for good?")

    phases = Phases(Screen(), quiet=as_json)
    show(sweep(Project.find(), stack, phases, confirm if delete else None), as_json, text)


def sweep(project: Project, stack: str, phases: Phases, confirm: Callable[[Document], bool] | None) -> Document:
    """The document of `--json`. confirm: called before orphans are deleted; None deletes nothing.

    It works as recovery does: orphans are imported into the engine's state, which then destroys them in order. Works
    without any state. Raises CommandError when something cannot be deleted.
    """
    planned = plan.plan(project, stack)
    cloud, engine = base.of(project, planned.decided), Engine(project, stack)
    state = engine.state() if engine.exists() else EMPTY
    document: Document = {"stack": stack, "strays": cloud.orphans(state), "removed": []}
    if not document["strays"] or confirm is None or not confirm(document):
        return document
    engine.prepare()
    with phases.phase("claim") as phase:
        # Protected resources are left to the next `up`, which imports them.
        removable = [row for row in planned.document["resources"] if not row["protect"]]
        state, urns = cloud.claimed(engine.state(), removable)
        engine.replace_state(state)
        phase.say(f"{len(urns)} of {len(document['strays'])} imported into the state")
    if urns:
        phases.command(f"pulumi destroy --refresh --stack {stack} --target …")
        with phases.phase("destroy") as phase:
            deleted: list[str] = []
            targets = [f"--target={urn}" for urn in urns]
            engine.destroy(
                project.log(stack, "sweep"), lambda _, name: deleted.append(name), refresh=True, options=targets
            )
            phase.say(f"{len(deleted)} resources deleted")
    with phases.phase("sweep") as phase:
        state = engine.state()
        cloud.clear(state, phase)
        if left := cloud.orphans(state):
            raise CommandError("could not delete:", *left, f"the whole log: {project.log(stack, 'sweep')}")
        phase.say("nothing left behind")
    return {**document, "strays": [], "removed": document["strays"]}


def text(document: Document) -> str:
    if document["removed"]:
        return f"{len(document['removed'])} orphans of {document['stack']} deleted"
    if not document["strays"]:
        return f"{document['stack']}: no orphaned resources"
    lines = [f"  {orphan}" for orphan in document["strays"]]
    count = f"{len(lines)} orphaned resource{'s' if len(lines) > 1 else ''}"
    return "\n".join([f"{document['stack']}: {count}: tagged, but not in the Pulumi state", *lines])
