"""`bench naive` and `bench naive-resnet50`: our job against a script as articles write it, same model, batch and number
of samples, one process.

A turn is an epoch and the checkpoint at its end, as articles save; neither side evaluates. Our side's time runs from
its first step to its checkpoint on disk, real data path and reports included. The article's runs from its first batch
to its `torch.save`.
"""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from torch import nn

from training.bench import article
from training.bench.figure import Figure, spread
from training.build import data_of, model_of
from training.config.job import Job, load
from training.data.images import ImageSet
from training.loop import train
from training.metrics.events import Report, Start

STEPS = {"naive": 62, "naive-resnet50": 16}  # an epoch: of MNIST-5k, and of 128 images
GOALS = {"naive": 2.3, "naive-resnet50": 1.2}
GOAL_WHERE_BF16_PAYS = 2.1  # of ResNet-50


class Clock(Report):
    """From the start of the steps to the checkpoint on disk."""

    def __init__(self) -> None:
        self.began = self.ended = 0.0

    def start(self, start: Start) -> None:
        self.began = time.perf_counter()

    def checkpoint(self, step: int) -> None:
        self.ended = time.perf_counter()


class AtEnd:
    """A stop at the last of so many steps: it is saved and, unlike a run's end, not evaluated."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def requested(self) -> bool:
        """Asked once before the first step and once in each."""
        self.left -= 1
        return self.left < 0


def measure(rounds: int) -> Figure:
    """How many times as fast our small-CNN job is."""
    return compared("naive", load("mnist", settings("naive")), rounds)


def resnet50(rounds: int) -> Figure:
    """How many times as fast our ResNet-50 job on images of 224 pixels is."""
    size = ["data.image_size=224", "data.samples=128", "data.held_out=8", "data.global_batch=8"]
    changes = ["augment.shift=16", "augment.flip=true"]
    job = load("resnet18-synthetic", [*settings("naive-resnet50"), *size, *changes, "model.kind=resnet50"])
    return compared("naive-resnet50", job, rounds)


def settings(name: str) -> list[str]:
    steps = [f"steps={STEPS[name]}", f"checkpoint.every_steps={STEPS[name]}", "optimizer.warmup_steps=0"]
    return [*steps, "optimizer={kind='adamw', lr=0.001}", "precision.compute=auto"]


def compared(name: str, job: Job, rounds: int) -> Figure:
    """Turns of both sides; the mode that ours chose in its first turn is kept for the others."""
    steps = STEPS[name]
    ours: list[float] = []
    theirs: list[float] = []
    mode = ""
    for _ in range(rounds + 1):
        with tempfile.TemporaryDirectory() as out:
            if mode:
                (Path(out) / "compute.json").write_text(mode)
            ours.append(our_round(replace(job, out=Path(out)), steps))
            mode = (Path(out) / "compute.json").read_text()
            theirs.append(their_round(job, steps, Path(out) / "article.pt"))
    ours, theirs = ours[1:], theirs[1:]  # the first turn warms both up
    pays = name == "naive-resnet50" and json.loads(mode)["compute"] == "bf16"
    return Figure(
        name=name,
        what="our job against a script as articles write it, 1 process",
        value=min(theirs) / min(ours),
        goal=GOAL_WHERE_BF16_PAYS if pays else GOALS[name],
        rows={"ours": spread(ours, steps), "article": spread(theirs, steps)},
        settings={
            "job": f"{job.model.kind} on {job.data.kind}, batch {job.data.global_batch}",
            "chosen": mode.strip(),
            "turn": f"{steps} steps, a checkpoint at their end, our loop reports every {job.log_every}",
        },
    )


def our_round(job: Job, steps: int) -> float:
    """Seconds of our loop over the job's steps."""
    clock = Clock()
    train(job, report=clock, stop=AtEnd(steps))
    return clock.ended - clock.began


def their_round(job: Job, steps: int, file: Path) -> float:
    """Seconds of the article's loop over the same number of steps."""
    model, pictures = article_of(job)
    start = time.perf_counter()
    article.train(
        model,
        pictures,
        batch=job.data.global_batch,
        steps=steps,
        lr=job.optimizer.lr,
        save_every=steps,
        file=file,
    )
    return time.perf_counter() - start


def article_of(job: Job) -> tuple[nn.Module, article.Pictures]:
    """The job's model and images, as the article holds them."""
    data = data_of(job)
    assert isinstance(data, ImageSet)
    assert isinstance(data.mean, float)
    assert isinstance(data.std, float)
    images, labels = data.train.at(np.arange(len(data.train)), None)
    pixels = images.permute(0, 2, 3, 1).squeeze(-1).numpy()
    augment = job.augment
    return model_of(job, data), article.Pictures(
        np.ascontiguousarray(pixels),
        labels.numpy(),
        mean=data.mean,
        std=data.std,
        shift=augment.shift,
        warp=augment.warp,
        flip=augment.flip,
    )
