"""`bench naive`: our job against a script as articles write it, same model, batch and number of samples, one process.

Our side's time runs from its first step to its last checkpoint on disk: real data path, checkpoints at the same
interval and reports included. The article's runs from its first batch to its last `torch.save`.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from training import data, models
from training.bench import article
from training.bench.figure import Figure, spread
from training.config import Job, load
from training.data.images import ImageSet
from training.loop import train
from training.report import Report, Start

STEPS = 62  # an epoch of MNIST-5k
SAVE_EVERY = 20
GOAL = 2.0


class Clock(Report):
    """From the start of the steps to the last checkpoint on disk."""

    def __init__(self) -> None:
        self.began = self.ended = 0.0

    def start(self, start: Start) -> None:
        self.began = time.perf_counter()

    def checkpoint(self, step: int) -> None:
        self.ended = time.perf_counter()


def measure(rounds: int) -> Figure:
    """How many times as fast our job is."""
    made = load("mnist", [f"steps={STEPS}", f"checkpoint.every_steps={SAVE_EVERY}", "optimizer.kind=adamw"])
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(rounds + 1):
        with tempfile.TemporaryDirectory() as out:
            ours.append(our_turn(replace(made, out=Path(out))))
            theirs.append(their_turn(made, Path(out) / "article.pt"))
    ours, theirs = ours[1:], theirs[1:]  # the first turn warms both up
    return Figure(
        name="naive",
        what="our job against a script as articles write it, 1 process",
        value=min(theirs) / min(ours),
        goal=GOAL,
        rows={"ours": spread(ours, STEPS), "article": spread(theirs, STEPS)},
        settings={
            "job": f"{made.model.kind} on {made.data.kind}, batch {made.data.global_batch}, {made.precision.compute}",
            "turn": f"{STEPS} steps, a checkpoint every {SAVE_EVERY}, our loop reports every {made.log_every}",
        },
    )


def our_turn(made: Job) -> float:
    """Seconds of our loop over the job's steps."""
    clock = Clock()
    train(made, report=clock)
    return clock.ended - clock.began


def their_turn(made: Job, file: Path) -> float:
    """Seconds of the article's loop over the same number of steps."""
    found = data.load(made)
    assert isinstance(found, ImageSet)
    images, labels = found.train.at(np.arange(len(found.train)), None)
    model = models.build(made, found)
    assert isinstance(found.mean, float)
    assert isinstance(found.std, float)
    digits = article.Digits(
        images[:, 0].numpy(),
        labels.numpy(),
        mean=found.mean,
        std=found.std,
        shift=made.augment.shift,
        warp=made.augment.warp,
    )
    start = time.perf_counter()
    article.train(
        model, digits, batch=made.data.global_batch, steps=STEPS, lr=made.optimizer.lr, save_every=SAVE_EVERY, file=file
    )
    return time.perf_counter() - start
