"""Whether a job makes progress, read from the files that it writes; so rounds that were killed count too."""

from __future__ import annotations

from pathlib import Path

from training.checkpoint.naming import step_of
from training.metrics.progress import records_in

ROUNDS_WITHOUT_A_STEP = 3


def newest_checkpoint(out: Path) -> int | None:
    """The newest committed step under `<out>/checkpoints`, or None."""
    folder = out / "checkpoints"
    steps = (step_of(entry.name) for entry in folder.iterdir()) if folder.is_dir() else ()
    return max((step for step in steps if step is not None), default=None)


def newest_step(out: Path) -> int:
    """The newest step that left a trace, a checkpoint or a rank's record of its steps; 0 if none did."""
    recorded = [record.step for record in records_in(out / "progress")]
    return max([newest_checkpoint(out) or 0, *recorded])


class Progress:
    """Counts the rounds that ended without a step newer than any before. out: the run's folder, shared by the nodes."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._best = newest_step(out)
        self._rounds = 0

    def round_failed(self) -> None:
        """Note the end of a failed round."""
        step = newest_step(self._out)
        self._rounds = 0 if step > self._best else self._rounds + 1
        self._best = max(step, self._best)

    def checkpoint(self) -> int | None:
        """The step that the next round starts from, or None before the first checkpoint."""
        return newest_checkpoint(self._out)

    @property
    def stalled(self) -> bool:
        """Whether trying again is no use."""
        return self._rounds >= ROUNDS_WITHOUT_A_STEP
