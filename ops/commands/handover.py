"""`gpufleet handover`: what playbooks and jobs work from."""

from __future__ import annotations

from ops import stack as stacks
from ops.console.terminal import Stack, write_json
from ops.project import Project


def command(stack: Stack) -> None:
    """Print the input of playbooks and jobs as JSON: the cluster with its current nodes."""
    write_json(stacks.discovered(Project.find(), stack).handover.model_dump(mode="json"))
