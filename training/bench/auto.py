"""`bench auto`: what `compute = "auto"` chooses for three models, against fp32 in the plain layout."""

from __future__ import annotations

import time

import numpy as np
import torch

from training.autotune import PLAIN, Passes, candidates, chosen, timed, trial
from training.bench.figure import Figure
from training.build import data_of, model_of
from training.config.job import load
from training.data.transforms.draw import Draw
from training.precision import Precision

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
    results = {case: compared(job, changes, rounds) for case, (job, changes) in CASES.items()}
    longest = max(seconds for _, seconds, _ in results.values())
    return Figure(
        name="auto",
        what='compute = "auto" against fp32 in the plain layout: the least gain of the models',
        value=min(gain for gain, _, _ in results.values()),
        goal=GOAL,
        rows={
            **{case: line for case, (_, _, line) in results.items()},
            "longest trial": f"{longest:.1f} s, goal {TRIAL_SECONDS:g} or less",
        },
        settings={"turns": str(rounds)},
    )


def compared(name: str, changes: list[str], rounds: int) -> tuple[float, float, str]:
    """The gain, the seconds of the trial, and a line about the choice and its trial."""
    job = load(name, changes)
    data, device = data_of(job), torch.device("cpu")
    model = model_of(job, data)
    inputs, targets = data.training(Draw(1, 0), np.arange(job.data.global_batch))
    modes = candidates(device, images=True, fp16=job.against_fp16() is None)
    start = time.perf_counter()
    mode = chosen(modes, trial(Passes(model, inputs, targets, device), modes))
    seconds = time.perf_counter() - start
    name = f"{mode.compute}, {'channels last' if mode.channels_last else 'plain layout'}"
    if mode == PLAIN:
        return 1.0, seconds, f"{name}, the plain mode itself; trial {seconds:.1f} s"
    times: dict[bool, list[float]] = {True: [], False: []}
    for number in range(rounds + 1):
        for plain in (True, False):
            used = PLAIN if plain else mode
            precision = Precision(used.compute, device, deterministic=False)
            took = timed(precision, model, inputs, targets, used, device)
            if number:
                times[plain].append(took)
    gain = min(times[True]) / min(times[False])
    least = f"{min(times[False]) * 1e3:.1f} ms a step against {min(times[True]) * 1e3:.1f}"
    return gain, seconds, f"{name}: {gain:.2f}×, {least}; trial {seconds:.1f} s"
