"""Projects to plan: the repository itself, and copies of it in a git repository of their own."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from ops.project import Project

REPOSITORY = Path(__file__).resolve().parents[3]
LOCAL = """\
config:
  gpufleet:cluster:
    cloud: local
    isolation: process
    nodes:
      - {name: node, count: 2}
"""


def shipped() -> list[str]:
    """Every stack that comes with the project."""
    return sorted(file.stem.removeprefix("Pulumi.") for file in (REPOSITORY / "stacks").glob("Pulumi.*.yaml"))


def committed(folder: Path) -> Project:
    """A repository whose only commit holds the program as it is here, and one local stack, `x`."""
    for part in ("infra", "ops"):
        ignored = shutil.ignore_patterns("__pycache__", ".venv")
        shutil.copytree(REPOSITORY / part, folder / part, ignore=ignored, symlinks=True)
    shutil.copy(REPOSITORY / "Pulumi.yaml", folder)
    (folder / "stacks").mkdir()
    write(folder, LOCAL)
    git(folder, "init", "-q")
    commit(folder)
    return Project(folder)


def commit(folder: Path) -> str:
    """All that is there, and the commit's name."""
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "all")
    return git(folder, "rev-parse", "HEAD")


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"]
    command = ["git", "-C", str(folder), *who, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def write(folder: Path, content: str) -> None:
    (folder / "stacks" / "Pulumi.x.yaml").write_text(content)
