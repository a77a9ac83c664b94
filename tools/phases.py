"""Phases of set-up: each a line with its time when it is done, a moving line while it works, a remedy when it fails."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

HEARTBEAT_SECONDS = 15  # between two signs of life where the line cannot be rewritten
TAIL_LINES = 12  # of a failed command's output


class PhaseError(Exception):
    """A phase that cannot be done: what failed, what to do about it, and the last lines a command printed."""

    def __init__(self, what: str, remedy: str, tail: Sequence[str] = ()) -> None:
        super().__init__(what)
        self.what, self.remedy, self.tail = what, remedy, tuple(tail)


class CommandError(Exception):
    """A command that ended badly; `tail` holds its last lines."""

    def __init__(self, command: Sequence[str], ending: str, tail: Sequence[str]) -> None:
        words = [Path(command[0]).name, *(word for word in command[1:] if not word.startswith("--"))]
        super().__init__(f"`{' '.join(words[:4])}` {ending}")
        self.tail = tuple(tail)


@dataclass(frozen=True)
class Row:
    """One phase that was done (`ok`), left out with a reason (`skipped`) or failed."""

    phase: str
    note: str
    seconds: float
    state: str


class SkippedError(Exception):
    """A phase that may be missing is missing; the text says what will not work."""


class Table:
    """Runs phases and reports their progress on `out`.

    A terminal sees one moving line a phase; anything else sees a line every `HEARTBEAT_SECONDS`.
    """

    def __init__(self, out: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self.rows: list[Row] = []
        self._out, self._clock = out, clock
        self._name, self._began, self._said = "", clock(), clock()

    def run(self, name: str, phase: Callable[[], str]) -> str:
        """Runs one phase, which returns its note. Raises the phase's PhaseError, after printing it."""
        self._name, self._began = name, self._clock()
        self._said = self._began
        try:
            note = phase()
        except SkippedError as reason:
            self._close(str(reason), "skipped")
            return str(reason)
        except PhaseError as error:
            self._fail(error)
            raise
        except OSError as error:
            failure = PhaseError(str(error), "see that this user can write there, and that the disk has room")
            self._fail(failure)
            raise failure from error
        self._close(note, "ok")
        return note

    def working(self, on: str) -> None:
        """Says what the phase is at; cheap enough to be called for every line a command prints."""
        elapsed = self._clock() - self._began
        if self._out.isatty():
            self._write("\r\x1b[K" + f"  {self._name:<11} {on:<64.64} {elapsed:7.0f} s")
        elif self._clock() - self._said >= HEARTBEAT_SECONDS:
            self._said = self._clock()
            self._write(f"  {self._name:<11} … {on}, {elapsed:.0f} s\n")

    def save(self, path: Path) -> str:
        """Writes the phases as JSON to `path` and returns the text."""
        text = json.dumps([asdict(row) for row in self.rows], indent=2, ensure_ascii=False) + "\n"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return text

    def _fail(self, error: PhaseError) -> None:
        self._close(f"failed: {error.what}", "failed")
        for line in error.tail:
            self._write(f"      {line}\n")
        self._write(f"  to do: {error.remedy}\n")

    def _close(self, note: str, state: str) -> None:
        seconds = round(self._clock() - self._began, 3)
        self.rows.append(Row(self._name, note, seconds, state))
        self._write(("\r\x1b[K" if self._out.isatty() else "") + f"  {self._name:<11} {note:<64} {seconds:7.1f} s\n")

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


def command(
    argv: Sequence[str],
    on_line: Callable[[str], None],
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    limit_seconds: float | None = None,
) -> list[str]:
    """Runs `argv` and returns the lines it printed; `told` hears each one, and the last one again every second.

    The command has a process group of its own, which ends with this call however it is left. Raises CommandError when
    the command fails, is not there, or runs past `limit_seconds`.
    """
    began, printed, last = time.monotonic(), _Lines(), ""
    try:
        child = subprocess.Popen(
            argv,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise CommandError(argv, f"did not start: {error.strerror}", ()) from error
    try:
        assert child.stdout is not None
        with selectors.DefaultSelector() as ready:
            ready.register(child.stdout, selectors.EVENT_READ)
            while True:
                chunk = os.read(child.stdout.fileno(), 65536) if ready.select(timeout=1) else None
                if chunk == b"":
                    break
                for line in printed.feed(chunk or b""):
                    last = line
                    on_line(line)
                if chunk is None:
                    on_line(last)
                if limit_seconds and time.monotonic() - began > limit_seconds:
                    raise CommandError(argv, f"took more than {limit_seconds:.0f} s", printed.tail())
        if code := child.wait():
            raise CommandError(argv, f"ended with exit code {code}", printed.tail())
    finally:
        _end(child)
    return printed.lines


def _end(child: subprocess.Popen[bytes]) -> None:
    """Ends what is left of the command's process group: a moment to tidy up, then by force."""
    assert child.stdout is not None
    child.stdout.close()
    if child.poll() is not None:
        return
    os.killpg(child.pid, signal.SIGTERM)
    try:
        child.wait(timeout=5)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


class _Lines:
    """Whole, non-empty lines out of chunks of bytes."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._rest = b""

    def feed(self, chunk: bytes) -> list[str]:
        *whole, self._rest = (self._rest + chunk).replace(b"\r", b"\n").split(b"\n")
        new = [text for text in (line.decode(errors="replace").rstrip() for line in whole) if text]
        self.lines += new
        return new

    def tail(self) -> list[str]:
        rest = self._rest.decode(errors="replace").strip()
        return list(deque([*self.lines, rest] if rest else self.lines, maxlen=TAIL_LINES))


def shown(path: Path) -> str:
    """A path as people write it: with ~ for the home folder."""
    text, home = str(path), str(Path.home())
    return "~" + text[len(home) :] if text.startswith(home + os.sep) else text


def say(text: str) -> None:
    """One line to the person, outside any phase."""
    print(text, file=sys.stderr, flush=True)
