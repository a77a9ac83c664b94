"""`gpufleet down`: deletes a stack and verifies that nothing is left."""

from __future__ import annotations

import shutil

from infra.evaluate import decide
from ops import stack as stacks
from ops.clouds import base
from ops.commands import plan
from ops.commands.up import recover
from ops.console.phases import Phases
from ops.console.terminal import Json, Screen, Stack, Yes, confirmed, write, write_json
from ops.engine import state_repair
from ops.engine.pulumi import Engine
from ops.engine.state_repair import EMPTY
from ops.errors import CommandError
from ops.project import Project


def command(stack: Stack, yes: Yes = False, as_json: Json = False) -> None:
    """Delete a stack and verify that nothing of it is left. Shows what it stops costing, and asks."""
    project = Project.find()
    if not yes and not confirmed(f"take down stack {stack}, with the disks of its nodes{saving(project, stack)}?"):
        raise CommandError("nothing was taken down")
    phases = Phases(Screen(), quiet=as_json)
    existed = down(project, stack, phases)
    if as_json:
        write_json({"stack": stack, "found": existed, "phases": phases.as_json()})
    elif not existed:
        write(f"stack {stack} is not up: nothing to take down")


def down(project: Project, stack: str, phases: Phases) -> bool:
    """Returns False when there was nothing to delete. Raises CommandError when something is left afterwards.

    What a killed deployment left is imported into the engine's state first, to be deleted in the right order, too. The
    handover is deleted last, so that a re-run resumes a `down` that ended after the engine's part.
    """
    decided = decide(stacks.read(project, stack))
    cloud, engine = base.of(project, decided), Engine(project, stack)
    if not engine.exists() and not project.handover(stack).exists() and not cloud.orphans(EMPTY):
        return False
    try:
        engine.prepare()
        adopted = recover(cloud, engine, plan.plan(project, stack).document["resources"]) if cloud.billed else 0
        _destroy(engine, phases, refresh=adopted > 0)
        with phases.phase("sweep") as phase:
            removed = cloud.clear(EMPTY, phase)
            project.handover(stack).unlink(missing_ok=True)
            project.since(stack).unlink(missing_ok=True)
            if (reports := project.reports(stack)).exists():
                shutil.rmtree(reports)
            if left := cloud.orphans(EMPTY):
                raise CommandError("still present after destroy; please report:", *left)
            phase.say(f"nothing left behind{f' ({len(removed)} orphans deleted)' if removed else ''}")
        for resource in decided.remains:
            phases.note(f"remains     {resource}")
    except KeyboardInterrupt:
        raise CommandError(f"interrupted: re-run `gpufleet down {stack}` to resume", code=130) from None
    return True


def saving(project: Project, stack: str) -> str:
    """The saving, as the end of a question; empty for a stack that costs nothing."""
    cost = decide(stacks.read(project, stack)).cost
    return f", which ends {cost.hourly:.2f} {cost.currency}/h" if cost.hourly else ""


def _destroy(engine: Engine, phases: Phases, *, refresh: bool) -> None:
    deleted: list[str] = []

    def done(_: str, name: str) -> None:
        deleted.append(name)
        phase.say(f"{name} deleted")

    options = ["--continue-on-error"]  # a failure does not block the rest
    if state_repair.protected(engine.state()):
        options.append("--exclude-protected")
    phases.command(" ".join(["pulumi destroy", *options, "--stack", engine.stack]))
    with phases.phase("destroy") as phase:
        try:
            engine.destroy(engine.project.log(engine.stack, "destroy"), done, refresh=refresh, options=options)
        except CommandError as error:
            left = state_repair.standing(engine.state())
            again = f"re-run `gpufleet down {engine.stack}` to resume; still present:"
            raise CommandError(str(error), again, *left, code=error.code) from None
        protected = state_repair.protected(engine.state())  # only now have imported resources been read from the cloud
        engine.forget()
        phase.say(f"{len(deleted)} resources deleted")
    for name in protected:
        phases.note(f"kept        {name}: it is protected, since it cannot be created again or returned")
