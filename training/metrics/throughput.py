"""Samples a second while training; pauses for evaluation do not count."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Meter:
    """Counts steps of `batch` samples against the clock."""

    def __init__(self, batch: int) -> None:
        self._batch = batch
        self.restart()

    def restart(self) -> None:
        """Forgets what was counted: the first step after a start is slow and not representative."""
        self._began = self._lap_began = time.perf_counter()
        self._steps = self._lap_steps = 0

    def count(self) -> None:
        self._steps += 1
        self._lap_steps += 1

    def lap(self) -> float:
        """Samples a second since the lap before."""
        now = time.perf_counter()
        rate = self._lap_steps * self._batch / (now - self._lap_began)
        self._lap_began, self._lap_steps = now, 0
        return rate

    def overall(self) -> float:
        """Samples a second since the (re)start; 0 where no step was done."""
        return self._steps * self._batch / (time.perf_counter() - self._began)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stops the clock."""
        before = time.perf_counter()
        yield
        away = time.perf_counter() - before
        self._began += away
        self._lap_began += away
