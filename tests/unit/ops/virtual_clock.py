"""A clock for tests: what waits for minutes is done at once."""

from __future__ import annotations


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
