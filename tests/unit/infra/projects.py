"""A project in a temporary folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from infra.spec import StackFile, load

REPOSITORY = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Project:
    """A folder that Pulumi would take for a project: Pulumi.yaml, stacks/ and the repository's program."""

    root: Path

    def write(self, content: str | bytes, stack: str = "x") -> Path:
        path = self.root / "stacks" / f"Pulumi.{stack}.yaml"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def load(self, cluster: str, stack: str = "x") -> StackFile:
        """The stack file whose cluster is this text, not indented."""
        lines = ("    " + line for line in cluster.splitlines())
        self.write("\n".join(["config:", "  gpufleet:cluster:", *lines, ""]), stack)
        return load(self.root, stack)
