"""Time as the commands see it, so that a test can hand in its own."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """now: seconds since 1970. monotonic: seconds since any fixed moment, never set back."""

    def now(self) -> float: ...
    def monotonic(self) -> float: ...
    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """This computer's clock."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class VirtualClock:
    """A clock that only `sleep` moves on: what waits for minutes is done at once."""

    def __init__(self, now: float = 0.0) -> None:
        self.time = now

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds


REAL: Clock = SystemClock()
