"""`gpufleet copy`: copies another stack's bucket into this one's with rclone.

It runs on this computer with the user's own credentials of both clouds: no node has keys of two. Checkpoints are
folders that never change and end with a manifest, so an incomplete copy cannot be loaded, and a re-run resumes it.
"""

from __future__ import annotations

import shutil

from ops import stack as stacks
from ops.clouds import base
from ops.clouds.base import Document
from ops.console.phases import Phases
from ops.console.terminal import Json, Screen, Stack, write_json
from ops.errors import CommandError
from ops.project import Project


def command(stack: Stack, as_json: Json = False) -> None:
    """Copy other stacks' buckets into this one's (`copies`), with rclone and your own credentials."""
    document = copy(Project.find(), stack, Phases(Screen(), quiet=as_json))
    if as_json:
        write_json(document)


def copy(project: Project, stack: str, phases: Phases) -> Document:
    """The document of `--json`. Raises CommandError: when there is nothing to copy, nothing to copy with, or it
    fails."""
    handover = stacks.handover(project, stack)
    if not handover.copies:
        raise CommandError("cluster.copies: is empty, so there is nothing to copy")
    if shutil.which("rclone") is None:
        raise CommandError("rclone is not on PATH: install it (https://rclone.org/install)")
    plan = stacks.decide(stacks.read(project, stack))
    return {"stack": stack, **base.of(project, plan).copy(handover, phases)}
