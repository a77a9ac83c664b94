"""`gpufleet down`: everything of a stack taken away, and the proof that nothing is left."""

from __future__ import annotations

from infra.clouds.local import sweep

from ops import engine
from ops.failure import Failure
from ops.phases import Phases
from ops.project import Project


def down(project: Project, stack: str, phases: Phases) -> bool:
    """Returns False when there was nothing to take down. Raises Failure when something is left afterwards."""
    site, known = project.site(stack), engine.Engine(project, stack)
    if not known.exists() and not sweep.left_behind(site):
        return False
    gone: list[str] = []

    def done(_: str, name: str) -> None:
        gone.append(name)
        phase.say(f"{name} gone")

    try:
        if known.exists():
            phases.command(f"pulumi destroy --stack {stack}")
            with phases.phase("destroy") as phase:
                known.destroy(project.log(stack, "destroy"), done)
                phase.say(f"{len(gone)} resources gone")
        with phases.phase("sweep") as phase:
            swept = sweep.remove(site)
            project.handover(stack).unlink(missing_ok=True)
            project.since(stack).unlink(missing_ok=True)
            if left := sweep.left_behind(site):
                raise Failure("left behind, please report:", *left)
            phase.say(f"nothing left behind{f' ({len(swept)} strays removed)' if swept else ''}")
    except KeyboardInterrupt:
        raise Failure(f"interrupted: `gpufleet down {stack}` goes on from here", code=130) from None
    return True
