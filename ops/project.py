"""Paths of a project: its root, its state folder, the runs fetched from nodes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ops.errors import CommandError

CLOSED, OTHERS = 0o700, 0o077


@dataclass(frozen=True)
class Project:
    """A folder with a Pulumi.yaml; gpufleet stores all its state in `.gpufleet` below it."""

    root: Path

    @classmethod
    def find(cls) -> Project:
        """The project of the working directory, its state closed to other users. Raises CommandError when there is
        none."""
        here = Path.cwd()
        for folder in (here, *here.parents):
            if (folder / "Pulumi.yaml").is_file():
                project = cls(folder)
                if project.state.exists():
                    project.close_state()
                return project
        raise CommandError(f"no Pulumi.yaml in {here} or above it: run gpufleet inside a project", code=2)

    @property
    def state(self) -> Path:
        return self.root / ".gpufleet"

    def close_state(self) -> None:
        """Makes the state folder, or removes other users' rights to it: it holds login keys, the engine's state, and
        the path of the program that is run as the engine. Raises CommandError where this user may not do that.
        """
        try:
            self.state.mkdir(mode=CLOSED, exist_ok=True)
            about = self.state.stat()
            if about.st_uid not in (os.geteuid(), self.root.stat().st_uid):
                raise CommandError(
                    f"{self.state} belongs to user {about.st_uid}: remove it, or `chown` it, then re-run"
                )
            if about.st_mode & OTHERS:
                self.state.chmod(CLOSED)
        except OSError as error:
            raise CommandError(
                f"{self.state} cannot be closed to other users ({error.strerror}): chmod 700 it"
            ) from None

    def site(self, stack: str) -> Path:
        """Files of a `local` stack: keys, node folders, shared storage."""
        return self.state / "local" / stack

    def runs(self, stack: str) -> Path:
        """Results fetched from a stack's nodes, one folder a run."""
        return self.state / "runs" / stack

    def handover(self, stack: str) -> Path:
        """The handover as a file: the input of playbooks."""
        return self.state / "handover" / f"{stack}.json"

    def reports(self, stack: str) -> Path:
        """Readiness reports that verify.yml fetched, one JSON file a node."""
        return self.handover(stack).with_suffix(".reports")

    def engine_state(self, stack: str) -> Path:
        """The engine's state of the stack, where the backend is the project's own."""
        return self.state / "pulumi" / ".pulumi" / "stacks" / "gpufleet" / f"{stack}.json"

    def since(self, stack: str) -> Path:
        """When the stack came up, in seconds since 1970."""
        return self.state / "handover" / f"{stack}.since"

    def log(self, stack: str, phase: str) -> Path:
        """The file with the whole output of the last command of a phase."""
        path = self.state / "logs" / stack / f"{phase}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path
