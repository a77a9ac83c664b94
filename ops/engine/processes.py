"""Child processes: started, logged, limited in time and output, and ended cleanly on Ctrl-C."""

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
from typing import IO

from infra.printable import printable
from ops.clock import REAL

CUT = 300  # the return code of a command that was cut off: no process has it
ERROR_BYTES = 64 * 1024
Process = subprocess.Popen[bytes]
Completed = subprocess.CompletedProcess[str]
CompletedBytes = subprocess.CompletedProcess[bytes]
TextProcess = subprocess.Popen[str]
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
            _follow(process, lambda line: record.write(printable(line)), on_line)
        except KeyboardInterrupt:
            # Its last output is logged, too; and it would block once the pipe is full.
            logged = (process, lambda line: record.write(printable(line)), lambda _: None)
            rest = threading.Thread(target=_follow, args=logged, daemon=True)
            rest.start()
            end(process, INTERRUPT_SECONDS)
            rest.join()
            raise
        return process.wait()


def bounded(command: Sequence[str | Path], *, given: bytes = b"", seconds: float, most: int) -> CompletedBytes:
    """Runs a command with untrusted output, of which at most `most` bytes are read.

    The return code is CUT when it printed too much or took too long; `stderr` then has that reason alone.
    """
    process = subprocess.Popen(
        [*map(str, command)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # so that what carries the connection ends with it
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    output: dict[str, bytes] = {}
    excess = threading.Event()

    def read(name: str, stream: IO[bytes], limit: int) -> None:
        with stream:
            output[name] = stream.read(limit + 1)
            if len(output[name]) > limit:
                excess.set()
                _kill(process)

    def write(stream: IO[bytes]) -> None:
        with contextlib.suppress(BrokenPipeError), stream:  # it may end without reading its input
            stream.write(given)

    threads = [
        threading.Thread(target=read, args=("out", process.stdout, most)),
        threading.Thread(target=read, args=("err", process.stderr, ERROR_BYTES)),
        threading.Thread(target=write, args=(process.stdin,)),
    ]
    limit = REAL.monotonic() + seconds
    try:
        for thread in threads:
            thread.start()
        for thread in threads:  # at the end of its output a command is as good as gone, and no wait polls for that
            thread.join(max(0.0, limit - REAL.monotonic()))
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, limit - REAL.monotonic()))
    finally:
        if late := process.returncode is None or any(thread.is_alive() for thread in threads):
            _kill(process)
        code = process.wait()
        for thread in threads:
            thread.join()
    if excess.is_set() or late:
        why = (
            f"its output exceeds {most // 1024} KiB"
            if excess.is_set()
            else f"no complete output within {seconds:.0f} s"
        )
        return subprocess.CompletedProcess(command, CUT, b"", why.encode())
    return subprocess.CompletedProcess(command, code, output["out"], output["err"])


def captured(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    given: str = "",
    seconds: float | None = None,
) -> Completed:
    """Runs a trusted command to its end with its output in memory. env: of this process by default.

    Raises OSError where it cannot be started, TimeoutError when it does not end in time.
    """
    try:
        return subprocess.run(
            [*map(str, command)],
            env=env and dict(env),
            cwd=cwd,
            input=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError from None


def written(command: Sequence[str | Path], output: IO[bytes], *, env: Mapping[str, str], seconds: float) -> int:
    """Runs a command with its output in a file and without its errors, and returns its exit code.

    Raises OSError where it cannot be started, TimeoutError when it does not end in time.
    """
    try:
        return subprocess.run(
            [*map(str, command)],
            env=dict(env),
            stdout=output,
            stderr=subprocess.DEVNULL,
            check=False,
            timeout=seconds,
        ).returncode
    except subprocess.TimeoutExpired:
        raise TimeoutError from None


def archived(command: Sequence[str | Path]) -> CompletedBytes:
    """Runs a trusted command whose output is not text."""
    return subprocess.run([*map(str, command)], stdin=subprocess.DEVNULL, capture_output=True, check=False)


def background(command: Sequence[str | Path], *, env: Mapping[str, str], cwd: Path) -> TextProcess:
    """Starts a command whose output is read with `communicate`, while this process works on."""
    return subprocess.Popen(
        [*map(str, command)], env=dict(env), cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def leased(command: Sequence[str | Path], *, errors: bool = False) -> Process:
    """Starts a command whose standard input is its lease: closed, the command ends by itself.

    It has a session of its own, so that Ctrl-C reaches us alone. errors: whether to read its standard error, too.
    """
    return subprocess.Popen(
        [*map(str, command)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if errors else None,
        start_new_session=True,
    )


def wait_or_kill(process: Process, patience_seconds: float) -> None:
    """Waits for a process to end by itself; after the patience, or at a Ctrl-C, it is killed."""
    try:
        process.wait(patience_seconds)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        process.kill()
        process.wait()


def _kill(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def leash() -> list[str]:
    """The prefix of a command that must not outlive this process."""
    return ["setpriv", "--pdeathsig", "INT", "--"] if shutil.which("setpriv") else []


def _follow(process: TextProcess, write: Callable[[str], object], on_line: Callable[[str], object]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        write(line)
        on_line(line.rstrip("\n"))


def end(process: TextProcess, patience_seconds: float) -> None:
    """Sends SIGINT to a process group, and kills it when it does not end in time or at a second Ctrl-C."""
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
