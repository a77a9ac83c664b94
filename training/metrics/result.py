"""The result of a run, `<out>/result.json`, and the marker of an interrupted one."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from training import atomic

RESULT, PREEMPTED = "result.json", "PREEMPTED"


@dataclass(frozen=True, kw_only=True)
class Result:
    """A finished run, or one that was stopped with a durable checkpoint (`finished` is false then).

    steps: done so far. digest: sha256 over all tensors by name, None after a stop, which has no time to read them all.
    loss: of the last reported step, None where no step was left to do. lost_steps: done, lost with a crash and done
    again. seconds: wall time over all starts. trial_seconds: of the trial that chose compute and channels_last, None
    where the job named them.
    """

    name: str
    steps: int
    digest: str | None
    accuracy: float | None
    loss: float | None
    samples_per_second: float
    lost_steps: int
    restarts: int
    seconds: float
    world_size: int
    finished: bool
    device: str
    compute: str
    channels_last: bool
    trial_seconds: float | None
    versions: dict[str, str]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def write(self, out: Path) -> None:
        """Puts it into the run's folder; a stopped run also leaves the marker that schedulers look for."""
        atomic.write(out / RESULT, (json.dumps(self.to_json(), indent=2) + "\n").encode())
        if not self.finished:
            atomic.write(out / PREEMPTED, (json.dumps({"step": self.steps}) + "\n").encode())
