"""Commands that gpufleet runs are logged whole and leave no process behind."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ops.engine import processes


def run(script: str, log: Path, on_line: Callable[[str], object]) -> int:
    return processes.run([sys.executable, "-u", "-c", script], env=os.environ, cwd=log.parent, log=log, on_line=on_line)


def test_every_line_reaches_the_log_and_the_listener(tmp_path: Path) -> None:
    lines: list[str] = []

    code = run("import sys; print('one'); print('two', file=sys.stderr); sys.exit(3)", tmp_path / "log", lines.append)

    assert code == 3
    assert lines == ["one", "two"]
    assert (tmp_path / "log").read_text().endswith("one\ntwo\n")


def test_ctrl_c_asks_the_command_once_and_waits_for_it(tmp_path: Path) -> None:
    script = (
        "import signal, sys, time\n"
        "def leave(*_): print('x' * 200_000); print('tidied up'); sys.exit(0)\n"
        "signal.signal(signal.SIGINT, leave)\n"
        "print('ready')\n"
        "time.sleep(60)\n"
    )

    with pytest.raises(KeyboardInterrupt):
        run(script, tmp_path / "log", on_line=lambda _: os.kill(os.getpid(), signal.SIGINT))

    assert (tmp_path / "log").read_text().endswith("x\ntidied up\n")
    assert not processes_with("tidied up")


def processes_with(text: str) -> list[str]:
    return [str(path) for path in Path("/proc").glob("[0-9]*/cmdline") if text.encode() in read(path)]


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # the process ended between the listing and the read
        return b""
