"""Running the public commands that gpufleet only chains: shown, logged whole, ended cleanly on Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

INTERRUPT_SECONDS = 30.0  # what the engine needs to finish the resource it is working on


def run(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str],
    cwd: Path,
    log: Path,
    on_line: Callable[[str], object],
) -> int:
    """Runs a command to its end and returns its exit code; each line of its output goes to `log` and to `on_line`.

    Ctrl-C reaches the command once, as SIGINT to its own process group; when it does not end within 30 s, or at
    a second Ctrl-C, the group is killed. KeyboardInterrupt goes on to the caller only after the command is gone.
    When this process is killed, the kernel sends the command the same SIGINT, where there is util-linux to ask it.
    """
    with log.open("w", buffering=1) as record:
        record.write(f"$ {shlex.join(map(str, command))}\n")
        process = subprocess.Popen(
            [*leash(), *map(str, command)],
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            _follow(process, record.write, on_line)
        except KeyboardInterrupt:
            # What it says on its way out is logged too; and one that nobody reads stands still once the pipe is full.
            rest = threading.Thread(target=_follow, args=(process, record.write, lambda _: None), daemon=True)
            rest.start()
            end(process, INTERRUPT_SECONDS)
            rest.join()
            raise
        return process.wait()


def leash() -> list[str]:
    """What stands before a command that must not outlive us."""
    return ["setpriv", "--pdeathsig", "INT", "--"] if shutil.which("setpriv") else []


def _follow(process: subprocess.Popen[str], write: Callable[[str], object], on_line: Callable[[str], object]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        write(line)
        on_line(line.rstrip("\n"))


def end(process: subprocess.Popen[str], patience_seconds: float) -> None:
    """Asks a process group to end with SIGINT, and kills it when it does not in time or a person insists."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    try:
        process.wait(patience_seconds)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def tail(log: Path, lines: int = 12) -> list[str]:
    """The last lines of a log, for the message that names it."""
    return [f"    {line}" for line in log.read_text(errors="replace").splitlines()[-lines:] if line.strip()]
