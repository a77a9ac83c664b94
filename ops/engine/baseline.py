"""The plan to compare with: a saved one, or that of a commit, planned by the program of that commit."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from infra import spec
from infra.printable import escaped, one_line
from ops.engine import processes
from ops.engine.processes import CompletedBytes, TextProcess
from ops.errors import CommandError
from ops.project import Project

Document = dict[str, Any]
NOTHING: Document = {
    "resources": [],
    "findings": [],
    "cost": {"hourly": 0.0, "hourly_max": 0.0, "items": []},
    "commands": [],
    "decisions": {},
}


class _Row(BaseModel):
    urn: str
    type: str
    name: str
    parent: str
    custom: bool
    inputs: dict[str, Any]
    property_dependencies: dict[str, list[str]]
    provider: str
    protect: bool


class _Item(BaseModel):
    name: str
    hourly: float | None


class _Cost(BaseModel):
    hourly: float
    hourly_max: float
    items: list[_Item]


class _Command(BaseModel):
    where: str
    when: str
    argv: list[str]


class _Saved(BaseModel):
    """What a plan must have to be compared; it may have more."""

    stack: str
    resources: list[_Row]
    findings: list[dict[str, str]]
    cost: _Cost
    commands: list[_Command] = []
    decisions: dict[str, Any] = {}


@contextmanager
def document(project: Project, stack: str, against: str) -> Iterator[Callable[[], Document]]:
    """Yields a function that returns the document: a commit is planned meanwhile, in a process of its own.

    against: a file, else a git ref; of a commit that does not have the stack yet, a plan of nothing. Raises
    CommandError, code 2: for what is neither a file nor a commit, for a file that holds no plan of this stack, and for
    a commit that cannot be planned.
    """
    file = Path(against)
    if file.is_file():
        if not against.startswith(("/", "./", "../")) and shutil.which("git") and _commit(project.root, against):
            # Else a file of this name, added by the change under review, would be what that change is compared with.
            raise CommandError(f"--against {against}: is a commit and a file; give the file as ./{against}", code=2)
        yield lambda: _saved(file, stack)
        return
    with tempfile.TemporaryDirectory(prefix="gpufleet-plan-") as folder:
        there = Project(Path(folder).resolve())
        _unpack(project.root, against, there.root)
        if not _has(there.root, stack):
            yield lambda: {"stack": stack, **NOTHING}
            return
        process = _start(there.root, stack)
        try:
            yield lambda: _planned(process, there, project, against)
        finally:
            process.kill()
            process.wait()


def _saved(file: Path, stack: str) -> Document:
    try:
        plan = json.loads(file.read_text())
        _Saved.model_validate(plan)
    except (ValueError, ValidationError):
        raise CommandError(f"{file}: is not a plan; `gpufleet plan {stack} --json` prints one", code=2) from None
    if plan["stack"] != stack:
        raise CommandError(f"{file}: is a plan of stack {plan['stack']}, not of {stack}", code=2)
    return plan


def _unpack(root: Path, ref: str, folder: Path) -> None:
    """Extracts the project's tracked files of the commit."""
    if not (commit := _commit(root, ref)):
        raise CommandError(f"--against {ref}: neither a file nor a commit of this repository", code=2)
    packed = _git(root, "archive", "--format=tar", commit)
    if packed.returncode:
        raise CommandError(f"--against {ref}: the commit does not hold this project", code=2)
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        try:
            archive.extractall(folder, filter="data")
        except tarfile.FilterError as error:  # a file of the commit that would be, or link, outside of the folder
            raise CommandError(
                f"--against {ref}: the commit cannot be extracted: {one_line(str(error))}", code=2
            ) from None


def _commit(root: Path, ref: str) -> str:
    """The commit's hash; empty where there is none."""
    answer = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    return answer.stdout.decode().strip()


def _has(root: Path, stack: str) -> bool:
    try:
        return stack in spec.stacks(root)
    except spec.SpecError:  # planning it reports what is wrong
        return True


def _git(root: Path, *arguments: str) -> CompletedBytes:
    """Never in a repository without a work tree: one may be among the project's files, with commits and settings of an
    attacker (git-config, safe.bareRepository)."""
    command = ["git", "-C", root, "-c", "safe.bareRepository=explicit", *arguments]
    try:
        return processes.archived(command)
    except FileNotFoundError:
        raise CommandError(
            "--against a commit needs git: install it, or give the file of a saved plan", code=2
        ) from None


def _start(folder: Path, stack: str) -> TextProcess:
    environment = {**os.environ, "PYTHONPATH": str(folder)}  # the commit's program, whatever is installed
    return processes.background([sys.executable, "-m", "ops", "plan", stack, "--json"], env=environment, cwd=folder)


def _planned(process: TextProcess, there: Project, project: Project, ref: str) -> Document:
    """The document with the paths of the project, not of the commit's temporary folder."""
    output, errors = process.communicate()
    try:
        plan = json.loads(output.replace(str(there.root), str(project.root)))
        _Saved.model_validate(plan)
    except (ValueError, ValidationError):
        why = errors.strip().splitlines() or ["it printed no plan"]
        last = escaped(why[-1])
        raise CommandError(f"--against {ref}: this stack cannot be planned as of that commit: {last}", code=2) from None
    return plan
