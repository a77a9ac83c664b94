"""`bench auto`: what `compute = "auto"` chooses for three models, against fp32 in the plain layout."""

from __future__ import annotations

import time

import numpy as np
import torch

from training import data, models
from training.autotune import PLAIN, candidates, chosen, timed, trial
from training.bench.figure import Figure
from training.config.job import load
from training.data.transforms.augment import Draw

CASES = {
    "small CNN @28, batch 64": ("mnist", []),
    "ResNet-18 @64, batch 16": ("resnet18-synthetic", ["data.global_batch=16", "data.samples=32"]),
    "ResNet-50 @224, batch 8": (
        "resnet18-synthetic",
        ["model.kind=resnet50", "data.global_batch=8", "data.samples=8", "data.held_out=8", "data.image_size=224"],
    ),
}
GOAL = 1.0
TRIAL_SECONDS = 3.0  # at most


def measure(rounds: int) -> Figure:
    """The smallest share of the plain mode's time to the chosen mode's: 1 where the plain mode is chosen."""
    found = {case: compared(job, changes, rounds) for case, (job, changes) in CASES.items()}
    longest = max(seconds for _, seconds, _ in found.values())
    return Figure(
        name="auto",
        what='compute = "auto" against fp32 in the plain layout: the least gain of the models',
        value=min(gain for gain, _, _ in found.values()),
        goal=GOAL,
        rows={
            **{case: told for case, (_, _, told) in found.items()},
            "longest trial": f"{longest:.1f} s, goal {TRIAL_SECONDS:g} or less",
        },
        settings={"turns": str(rounds)},
    )


def compared(name: str, changes: list[str], rounds: int) -> tuple[float, float, str]:
    """The gain, the seconds of the trial, and a line about the choice and its trial."""
    job = load(name, changes)
    found, device = data.load(job), torch.device("cpu")
    model = models.build(job, found)
    inputs, targets = found.training(Draw(1, 0), np.arange(job.data.global_batch))
    modes = candidates(job, device, images=True)
    start = time.perf_counter()
    mode = chosen(modes, trial(job, model, inputs, targets, modes, device))
    seconds = time.perf_counter() - start
    name = f"{mode.compute}, {'channels last' if mode.channels_last else 'plain layout'}"
    if mode == PLAIN:
        return 1.0, seconds, f"{name}, the plain mode itself; trial {seconds:.1f} s"
    times: dict[bool, list[float]] = {True: [], False: []}
    for turn in range(rounds + 1):
        for plain in (True, False):
            took = timed(job, model, inputs, targets, PLAIN if plain else mode, device)
            if turn:
                times[plain].append(took)
    gain = min(times[True]) / min(times[False])
    least = f"{min(times[False]) * 1e3:.1f} ms a step against {min(times[True]) * 1e3:.1f}"
    return gain, seconds, f"{name}: {gain:.2f}×, {least}; trial {seconds:.1f} s"
