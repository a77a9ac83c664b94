"""`gpufleet env`: the engine's settings for a shell."""

from __future__ import annotations

import os
import shlex

from ops.console.terminal import write
from ops.engine import pulumi
from ops.project import Project


def command() -> None:
    """Print the engine's settings as shell lines: eval "$(gpufleet env)", then `pulumi` works by hand."""
    for name, value in sorted(pulumi.environment(Project.find()).items()):
        if os.environ.get(name) != value:
            write(f"export {name}={shlex.quote(value)}")
