"""The Pulumi engine: its executable, its environment, and its public command line."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ops.clock import REAL, Clock
from ops.engine import leftover_processes, processes
from ops.engine.processes import Completed
from ops.errors import CommandError
from ops.project import Project

STEP = re.compile(r"^\s*\S+\s+(?P<type>\S+:\S+)\s+(?P<name>\S+)\s+(?P<done>created|updated|deleted|replaced)\b")

REPEATED = ("update failed", "preview failed", "resource monitor shut down", "Resource monitor has terminated")
WRAPPING = re.compile(r"^\S+ resource '[^']*': property \S+ value \{.*?\} has a problem: ")


def binary(project: Project) -> Path:
    """The engine's executable: the one that set-up chose, else the one on PATH."""
    chosen = project.state / "engine"
    if chosen.is_file() and (path := Path(chosen.read_text().strip())).is_file():
        return path
    if on_path := shutil.which("pulumi"):
        return Path(on_path)
    raise CommandError("no Pulumi engine: run `make setup` in the project, or put `pulumi` on PATH")


def environment(project: Project) -> dict[str, str]:
    """The environment of the engine, of Ansible and of a user's shell; the user's own settings take precedence.

    The state is in a file backend inside the project, whose folder must exist, unless PULUMI_BACKEND_URL names another.
    The passphrase defaults to the empty one: the shipped local stacks hold no secret.
    """
    project.close_state()
    backend = project.state / "pulumi"
    backend.mkdir(parents=True, exist_ok=True)
    env = {
        "PULUMI_BACKEND_URL": f"file://{backend}?metadata=skip",
        "PULUMI_HOME": str(project.state / "home"),
        "PULUMI_SKIP_UPDATE_CHECK": "1",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "1",
        **os.environ,
    }
    if "PULUMI_CONFIG_PASSPHRASE_FILE" not in env:
        env.setdefault("PULUMI_CONFIG_PASSPHRASE", "")
    folders = [str(project.root / ".venv" / "bin"), str(binary(project).parent)]
    env["PATH"] = os.pathsep.join([*folders, env.get("PATH", os.defpath)])
    return env


@dataclass(frozen=True)
class Engine:
    """One stack of a project, driven through `pulumi`."""

    project: Project
    stack: str
    clock: Clock = REAL

    def prepare(self) -> None:
        """Creates the stack in the engine, or removes the lock of a deployment that died. Raises CommandError."""
        if self.exists():
            self._unlock()
        else:
            self._call("stack", "init", "--no-select", self.stack)

    def up(self, log: Path, on_done: Callable[[str, str], None]) -> None:
        """`pulumi up` of a prepared stack; `on_done(type, name)` for each resource created, updated or deleted.

        Raises CommandError.
        """
        self._deploy(["up", "--yes", "--skip-preview", "--refresh"], log, on_done)

    def destroy(
        self, log: Path, on_done: Callable[[str, str], None], *, refresh: bool = False, options: Sequence[str] = ()
    ) -> None:
        """`pulumi destroy` of a prepared stack, with more options. refresh: read all of it first. Raises
        CommandError."""
        more = [*(["--refresh"] if refresh else []), *options]
        self._deploy(["destroy", "--yes", "--skip-preview", *more], log, on_done)

    def forget(self) -> None:
        """Removes the stack's state, once it holds only what cannot be destroyed."""
        self._call("stack", "rm", "--yes", "--force", "--preserve-config", self.stack)

    def state(self) -> dict[str, Any]:
        """The state of a prepared stack."""
        return json.loads(self._call("stack", "export", "--stack", self.stack).stdout)

    def replace_state(self, state: dict[str, Any]) -> None:
        """Imports a state."""
        self._call("stack", "import", "--stack", self.stack, given=json.dumps(state))

    def exists(self) -> bool:
        """Whether the engine knows the stack."""
        listed = json.loads(self._call("stack", "ls", "--json").stdout)
        return self.stack in {stack["name"].rsplit("/", 1)[-1] for stack in listed}

    def output(self, name: str) -> object | None:
        """A stack output as plain data; None when the stack does not exist or has no such output."""
        answer = self._call("stack", "output", "--json", "--stack", self.stack, check=False)
        if answer.returncode:
            if "no stack named" in answer.stderr:
                return None
            raise CommandError(f"the engine cannot read stack {self.stack}: {_last_line(answer.stderr)}")
        return json.loads(answer.stdout).get(name)

    def _deploy(self, arguments: list[str], log: Path, on_done: Callable[[str, str], None]) -> None:
        def line(text: str) -> None:
            if step := STEP.match(text):
                on_done(step["type"], step["name"])

        code = processes.run(
            [binary(self.project), *arguments, "--stack", self.stack, "--non-interactive", "--color", "never"],
            env=environment(self.project),
            cwd=self.project.root,
            log=log,
            on_line=line,
        )
        if code:
            raise CommandError(*(diagnostics(log.read_text()) or processes.tail(log)), f"the whole log: {log}")

    def _unlock(self) -> None:
        """Removes the lock of a deployment whose process died on this computer; a running one gets time to end.

        A deployment whose caller was killed gets SIGINT from the kernel (see `processes.run`), and finishes the
        resources that it is creating.
        """
        for lock in (self.project.state / "pulumi" / ".pulumi" / "locks").glob(f"**/{self.stack}/*.json"):
            owner = _owner(lock)
            limit = self.clock.monotonic() + processes.INTERRUPT_SECONDS
            while owner and leftover_processes.alive(owner) and self.clock.monotonic() < limit:
                self.clock.sleep(0.2)
            if owner and leftover_processes.alive(owner):
                raise CommandError(f"process {owner} is deploying stack {self.stack}: wait until it has ended")
            if owner is not None and lock.exists():
                if owner:
                    leftover_processes.end_session(owner)
                self._call("cancel", "--yes", self.stack)

    def _call(self, *arguments: str, check: bool = True, given: str | None = None) -> Completed:
        command = [binary(self.project), *arguments, "--non-interactive", "--color", "never"]
        answer = processes.captured(command, env=environment(self.project), cwd=self.project.root, given=given or "")
        if check and answer.returncode:
            raise CommandError(f"`pulumi {' '.join(arguments)}` failed: {_last_line(answer.stderr)}")
        return answer


def _owner(lock: Path) -> int | None:
    """The process that holds a lock; 0 when it died before writing its id, None for another computer's."""
    try:
        owner = json.loads(lock.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return 0
    return owner["pid"] if owner["hostname"] == os.uname().nodename else None


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("error: ") if lines else "no error message"


def diagnostics(log: str) -> list[str]:
    """The error lines of the engine's final report, without repetitions and without the engine's prefixes."""
    report = log.partition("\nDiagnostics:\n")[2].partition("\nResources:\n")[0]
    errors = [message for part in report.split("\n\n") if (message := part.partition("error: ")[2])]
    lines = [line.strip().removeprefix("error: ") for error in errors for line in error.splitlines()]
    return list(dict.fromkeys(WRAPPING.sub("", line) for line in lines if line and not line.startswith(REPEATED)))
