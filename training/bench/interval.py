"""`bench interval`: what checkpoints cost a run in wall time, at the interval that `every_seconds = "auto"` chooses.

The same number of steps with one save, until it is durable, and without, taking turns; the difference is the cost of a
save. The share of the run is that cost over Daly's interval for it.
"""

from __future__ import annotations

import tempfile
import time
from statistics import median

from training.bench.checkpoint import settings, started, step
from training.bench.figure import Figure, spread
from training.checkpoint.interval import daly
from training.config.job import load
from training.loop import Run

STEPS = 12  # a turn: longer than a save takes
MTBF_SECONDS = 2.36 * 3600  # four spot instances in us-west-2c, "Can't Be Late" (NSDI 2024)
GOAL = 0.99


def measure(rounds: int) -> Figure:
    """The share of a run's time that is left for training."""
    plain: list[float] = []
    saving: list[float] = []
    with tempfile.TemporaryDirectory() as folder, started(load(*settings(folder))) as run:
        for number in range(1, rounds + 2):
            plain.append(run_round(run, None))
            saving.append(run_round(run, number))
    plain, saving = plain[1:], saving[1:]
    cost = max(0.001, median(one - other for one, other in zip(saving, plain, strict=True)))
    interval = daly(cost, MTBF_SECONDS)
    return Figure(
        name="interval",
        what="share of the time left for training where a checkpoint is saved as often as loses least",
        value=1 - cost / interval,
        goal=GOAL,
        rows={"without a save": spread(plain, STEPS), "with one": spread(saving, STEPS), "a save": f"{cost:.3f} s"},
        settings={"interval": f"{interval:.0f} s for an interruption every {MTBF_SECONDS / 3600:.2f} h"},
    )


def run_round(run: Run, save: int | None) -> float:
    """Seconds of the steps, with a save at the first of them where one is asked for."""
    start = time.perf_counter()
    if save is not None:
        run.checkpoints.save(save)
    for _ in range(STEPS):
        step(run)
    run.checkpoints.finish()
    return time.perf_counter() - start
