"""The real engine on a project in a temporary folder, and a look at what such a project leaves on this computer."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.clouds.local.nodes import site
from ops.engine import pulumi as engine
from ops.errors import CommandError
from ops.project import Project

REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class EngineRunner:
    """`pulumi` on a project in a temporary folder, as a person would call it there."""

    root: Path
    environment: dict[str, str]

    @classmethod
    def on_a_project(cls, root: Path) -> EngineRunner:
        """With the project's program in an empty folder; nothing of the caller's own Pulumi gets through."""
        try:
            executable = engine.binary(Project(REPOSITORY))
        except CommandError as missing:
            pytest.skip(str(missing))
        (root / "stacks").mkdir()
        (root / ".gpufleet").mkdir()
        (root / ".gpufleet" / "engine").write_text(str(executable))
        shutil.copy(REPOSITORY / "Pulumi.yaml", root)
        for name in ("infra", ".venv"):
            (root / name).symlink_to(REPOSITORY / name)
        with pytest.MonkeyPatch.context() as caller:
            for name in [name for name in os.environ if name.startswith("PULUMI_")]:
                caller.delenv(name)
            return cls(root=root, environment=engine.environment(Project(root)))

    def site(self, stack: str) -> Path:
        return Project(self.root).site(stack)

    def write(self, stack: str, **cluster: Any) -> None:
        """Writes the stack's file, and makes the stack known to the engine if it is new."""
        file = self.root / "stacks" / f"Pulumi.{stack}.yaml"
        known = file.exists()
        file.write_text(yaml.safe_dump({"config": {"gpufleet:cluster": cluster}}))
        if not known:
            self("stack", "init", "--no-select", stack)

    def __call__(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Runs one command; what it printed is in the error when it should have passed and did not."""
        with self._start(arguments) as command:
            printed, complained = command.communicate()
        assert not (check and command.returncode), printed + complained
        return subprocess.CompletedProcess(command.args, command.returncode, printed, complained)

    def stop(self, number: signal.Signals, when: Callable[[], object], *arguments: str) -> None:
        """Starts a command and sends it and its process group a signal at a moment; returns when it has ended."""
        with self._start(arguments) as command:
            try:
                until(when, command)
            finally:
                if command.poll() is None:
                    os.killpg(command.pid, number)
            command.communicate()

    def _start(self, arguments: tuple[str, ...]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["pulumi", *arguments, "--non-interactive", "--color", "never"],
            cwd=self.root,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def up(self, stack: str, *more: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return self("up", "--yes", "--skip-preview", "--stack", stack, *more, check=check)

    def refresh(self, stack: str) -> subprocess.CompletedProcess[str]:
        return self("refresh", "--yes", "--skip-preview", "--stack", stack)

    def destroy(self, stack: str) -> subprocess.CompletedProcess[str]:
        return self("destroy", "--yes", "--skip-preview", "--stack", stack)

    def cluster(self, stack: str) -> dict[str, Any]:
        """The handover, as the stack tells it."""
        return json.loads(self("stack", "output", "cluster", "--json", "--stack", stack).stdout)

    def resources(self, stack: str) -> list[dict[str, Any]]:
        """What the engine's state holds."""
        return json.loads(self("stack", "export", "--stack", stack).stdout)["deployment"].get("resources", [])


def until(done: Callable[[], object], command: subprocess.Popen[str] | None = None) -> None:
    """Waits for something that another process does, as long as a test may take; fails once that command has ended."""
    while not done():
        if command and command.poll() is not None:
            raise AssertionError("it ended before: " + " ".join(command.communicate()))
        time.sleep(0.002)


def traces(root: Path) -> set[str]:
    """Everything on this computer that names the project, found without the code under test.

    Processes by command, environment and working folder; mounts; what the kernel has under the sites' tags; files.
    """
    names = [file.name.removeprefix("Pulumi.").removesuffix(".yaml") for file in (root / "stacks").iterdir()]
    tags = [site.tag(site.folder(root, name)) for name in names]
    remains = {f"process {pid}" for pid in _processes(str(root))}
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    remains |= {f"mount {line.split()[4]}" for line in mounts if str(root) in line}
    for top in ("/run/netns", "/sys/class/net", "/sys/fs/cgroup", "/run/systemd/nspawn"):
        remains |= {str(path) for tag in tags for path in Path(top).rglob(f"{tag}*")}
    return remains | {str(path) for path in (root / ".gpufleet" / "local").rglob("*")}


def runs(root: Path, word: str) -> bool:
    """Whether a process of the project has this word in its command line."""
    return any(word.encode() in _proc_file(pid, "cmdline") for pid in _processes(str(root)))


def _proc_file(pid: int, file: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{file}").read_bytes()
    except OSError:  # it has ended meanwhile
        return b""


def _processes(text: str) -> list[int]:
    pids = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            about = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
            about += str((folder / "cwd").readlink()).encode()
            if text.encode() in about and int(folder.name) != os.getpid():
                pids.append(int(folder.name))
    return pids
