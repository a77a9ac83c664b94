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


REAL: Clock = SystemClock()
