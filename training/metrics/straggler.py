"""The time of the forward passes of each rank, which shows a slow one before the others wait for it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median

import torch


class Pace:
    """Times what lies between `begin` and `end`, without waiting for the device: a GPU's times are read at the lap."""

    def __init__(self, device: torch.device) -> None:
        self._gpu = device.type == "cuda"
        self._events: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []
        self._seconds = self._began = 0.0

    def begin(self) -> None:
        if self._gpu:
            self._events.append((torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)))
            self._events[-1][0].record()
        self._began = time.perf_counter()

    def end(self) -> None:
        self._seconds += time.perf_counter() - self._began
        if self._gpu:
            self._events[-1][1].record()

    def lap(self) -> float:
        """Seconds since the lap before; on a GPU it waits for the last pass."""
        seconds = self._seconds
        if self._events:
            self._events[-1][1].synchronize()
            seconds = sum(start.elapsed_time(end) for start, end in self._events) / 1e3
        self._events, self._seconds = [], 0.0
        return seconds


def straggler(seconds: Sequence[float]) -> float:
    """The slowest rank's time over the median rank's: 1 where all are alike."""
    middle = median(seconds)
    return max(seconds) / middle if middle else 1.0
