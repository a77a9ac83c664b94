"""Requests to stop the launcher: a signal, or the end of standard input."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType

from training.elastic.exit_codes import EXIT_FAILED, EXIT_PREEMPTED, LaunchExitError
from training.elastic.system import CLOCK, PROCESSES, Clock, Processes

STDIN = 0


class Request:
    """SIGTERM, SIGINT, SIGHUP and, when attached, the end of standard input. Use as a context manager in the main
    thread.

    reason: where the request came from, None while there is none. at: when, by the monotonic clock (s). idle: no rank
    runs here, so a request ends the launcher at once. at_once: do not wait for a checkpoint. A second SIGINT raises
    `LaunchExitError` wherever the launcher is.
    """

    def __init__(self, *, attached: bool, clock: Clock = CLOCK, processes: Processes = PROCESSES) -> None:
        self._clock, self._processes = clock, processes
        self.reason: str | None = None
        self.at = 0.0
        self.idle = True
        self.at_once = False
        self._attached = attached

    def __enter__(self) -> Request:
        self._before = {number: signal.signal(number, self._on_signal) for number in (signal.SIGTERM, signal.SIGINT)}
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup: the person said that it should stay
            self._before[signal.SIGHUP] = signal.signal(signal.SIGHUP, self._on_signal)
        if self._attached:
            threading.Thread(target=self._watch_stdin, name="attached", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and self.reason is not None:
            self.at_once = True
            raise LaunchExitError(EXIT_FAILED, "ended at once, without waiting for a checkpoint")
        if self.reason is None:
            self._note(signal.Signals(number).name)
        if self.idle:
            raise LaunchExitError(EXIT_PREEMPTED, f"stopped by {self.reason}; nothing was running here")

    def _note(self, reason: str) -> None:
        self.reason, self.at = reason, self._clock.monotonic()

    def _watch_stdin(self) -> None:
        while os.read(STDIN, 4096):
            pass
        self._note("the end of standard input")
        self._processes.send(os.getpid(), signal.SIGTERM)  # a system call of the main thread only wakes up for a signal
