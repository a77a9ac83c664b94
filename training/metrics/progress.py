"""Records how far a run got, so that a kill -9 does not lose it: for lost steps, restarts and seconds."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path

from training import strict
from training.parallel import Ranks

WIDTH_BYTES = 160  # a record is overwritten in place, always at its full width


@dataclass(frozen=True, kw_only=True)
class Progress:
    """A run up to now, over all its starts. step: the last one done. seconds: wall time of all starts together."""

    restarts: int = 0
    lost_steps: int = 0
    step: int = 0
    seconds: float = 0.0

    def resumed(self, step: int, *, again: bool) -> Progress:
        """The same run, started again from the checkpoint of that step; again: there are steps left to do."""
        lost = self.lost_steps + max(0, self.step - step)
        return Progress(restarts=self.restarts + again, lost_steps=lost, step=step, seconds=self.seconds)


class Tracker:
    """Keeps the progress of a run in `<out>/progress/`, one record a node, rewritten after every step.

    A write costs microseconds (the page cache holds it) and outlives the process. After a start the furthest record
    of any node counts, so a lost node does not lose the count.
    """

    def __init__(self, out: Path, ranks: Ranks, step: int, *, again: bool) -> None:
        """step: where this start begins; after an earlier one it is a restart, if it is to go on (`again`)."""
        folder = out / "progress"
        folder.mkdir(parents=True, exist_ok=True)
        gathered = ranks.gather([vars(record) for record in records_in(folder)])
        earlier = [Progress(**record) for records in gathered for record in records]
        furthest = max(earlier, key=lambda p: (p.restarts, p.step), default=None)
        self._start = Progress(step=step) if furthest is None else furthest.resumed(step, again=again)
        counts = f'"restarts": {self._start.restarts}, "lost_steps": {self._start.lost_steps}'
        self._form = f'{{{counts}, "step": %d, "seconds": %.3f}}'  # filled in at every step: json.dumps takes longer
        self._began = time.monotonic()
        self._file = None
        if ranks.local_rank == 0:
            self._file = os.open(folder / f"rank-{ranks.rank}.json", os.O_WRONLY | os.O_CREAT, 0o644)
        self.reached(step)

    def reached(self, step: int) -> None:
        """Records that this step is done."""
        self._reached = step, self.seconds()
        if self._file is not None:
            os.pwrite(self._file, (self._form % self._reached).ljust(WIDTH_BYTES - 1).encode() + b"\n", 0)

    @property
    def now(self) -> Progress:
        """The run up to the step that was reached last."""
        step, seconds = self._reached
        return replace(self._start, step=step, seconds=round(seconds, 3))

    def seconds(self) -> float:
        """Wall time of the run, over all its starts."""
        return self._start.seconds + time.monotonic() - self._began

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)


def records_in(folder: Path) -> list[Progress]:
    """The whole records of a folder; one that a power cut tore counts as missing."""
    return [record for path in folder.glob("rank-*.json") if (record := record_in(path))]


def record_in(path: Path) -> Progress | None:
    """The record of a file; None where it holds anything else."""
    try:
        with strict.regular(path) as file:
            values = strict.document(file.read(WIDTH_BYTES))
        record = Progress(**values)
    except (ValueError, TypeError, strict.NotRegularFileError):
        return None
    counts = (record.restarts, record.lost_steps, record.step)
    return record if all(map(strict.whole, counts)) and strict.number(record.seconds) else None
