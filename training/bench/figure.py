"""A measured figure, and the machine it was measured on."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path
from statistics import median


class BenchError(Exception):
    """A benchmark could not be run; one line."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """value: the ratio or share that is compared with `goal`. rows: the times behind it. settings: what was run."""

    name: str
    what: str
    value: float
    goal: float
    rows: dict[str, str]
    settings: dict[str, str]

    @property
    def verdict(self) -> str:
        return "reached" if self.value >= self.goal else "missed"


def spread(seconds: list[float], steps: int) -> str:
    """Minimum and median of a side's turns, a step."""
    least, middle = (value / steps * 1e3 for value in (min(seconds), median(seconds)))
    return f"min {least:.2f} ms a step, median {middle:.2f} ({len(seconds)} turns)"


def machine() -> dict[str, str]:
    """CPU, cores, and the versions that decide a figure."""
    import torch

    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return {
        "cpu": next(names, platform.processor() or platform.machine()),
        "cores": str(len(os.sched_getaffinity(0))),
        "load": f"{os.getloadavg()[0]:.1f}",
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
