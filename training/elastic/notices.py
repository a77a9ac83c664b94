"""Sources of requests to stop a job: signals, and a file.

A source answers from memory in microseconds, because it is polled at every step. One that needs the network (a cloud's
metadata service) polls in a thread of its own and keeps the last valid answer; an invalid answer is no notice.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from training.elastic.system import CLOCK, Clock

FILE_POLL_SECONDS = 0.5  # a stat on a shared file system may cost a millisecond: not at every step


class Source(Protocol):
    """One place a request to stop can come from."""

    def requested(self) -> str | None:
        """Why ("SIGTERM"), or None without a request. Never raises, never blocks."""
        ...


class Signals:
    """SIGTERM and SIGINT of this process: remembered, never raised into the running step.

    A process has one set of signal handlers, so it has one `Signals`: `Signals.of_process()`. The second SIGINT ends
    the process at once: a person who presses Ctrl-C twice does not want to wait for a checkpoint.
    """

    _of_process: Signals | None = None

    def __init__(self) -> None:
        self._name: str | None = None
        self._before: dict[int, Callable[[int, FrameType | None], Any] | int | None] = {}

    @classmethod
    def of_process(cls) -> Signals:
        """The listening source of this process; the first call installs the handlers (main thread only)."""
        if cls._of_process is None:
            cls._of_process = cls()
            cls._of_process._listen()
        return cls._of_process

    def requested(self) -> str | None:
        return self._name

    def release(self) -> None:
        """Restores the previous handlers (tests, benchmarks: processes that live on after a job)."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        Signals._of_process = None

    def _listen(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            self._before[number] = signal.signal(number, self._remember)

    def _remember(self, number: int, frame: FrameType | None) -> None:
        self._name = self._name or signal.Signals(number).name
        if number == signal.SIGINT:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


class FileSwitch:
    """A file that a person touches to stop a job: `touch runs/mnist/STOP`. While it is there the job stays stopped.

    The answer is at most `FILE_POLL_SECONDS` old.
    """

    def __init__(self, path: Path, clock: Clock = CLOCK) -> None:
        self._path, self._clock = path, clock
        self._next = 0.0
        self._there = False

    def requested(self) -> str | None:
        if (now := self._clock.monotonic()) >= self._next:
            self._next = now + FILE_POLL_SECONDS
            self._there = self._path.exists()
        return f"the file {self._path}" if self._there else None
