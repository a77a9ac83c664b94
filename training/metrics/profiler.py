"""A trace of a few steps by torch's profiler, and ranges for Nsight Systems."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from training.config.run import Trace


class Tracer:
    """Records the steps that the job asks for, on every rank, into `<out>/trace/rank-<n>.json` (Chrome's trace format:
    open it in Perfetto). Without a trace a step costs nothing."""

    def __init__(self, config: Trace, out: Path, rank: int) -> None:
        self._config, self._file = config, out / "trace" / f"rank-{rank}.json"
        self._profile: profile | None = None

    def began(self, step: int) -> None:
        """Before a step, counted from 1."""
        if step == self._config.from_step:
            activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if torch.cuda.is_available() else [])]
            self._profile = profile(activities=activities, record_shapes=True)
            self._profile.start()

    def ended(self, step: int) -> None:
        """After it; writes the trace when it was the last one."""
        if self._profile is not None and step >= self._config.from_step + self._config.steps - 1:
            self.close()

    def close(self) -> None:
        """Writes what was recorded; also of a run that ends in the middle."""
        if self._profile is not None:
            self._profile.stop()
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._profile.export_chrome_trace(str(self._file))
            self._profile = None


@contextmanager
def ranges(config: Trace) -> Iterator[None]:
    """Every operation as a range that `nsys profile` shows, where the job asks for it and there is a GPU."""
    if not (config.nvtx and torch.cuda.is_available()):
        yield
        return
    with torch.autograd.profiler.emit_nvtx():
        yield
