"""Hugging Face Accelerate's `save_state` of the job's model and optimizer: a turn is one save into a fresh folder."""
# pyright: reportMissingImports=false

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from accelerate import Accelerator

from training import data, models
from training.bench.theirs import serve
from training.config import Job
from training.data.augment import Draw
from training.objective import cross_entropy


def turn_of(job: Job) -> Callable[[], float]:
    found = data.load(job)
    model = models.build(job, found)
    optimizer = torch.optim.SGD(model.parameters(), lr=job.optimizer.lr, momentum=0.9)
    inputs, targets = found.training(Draw(job.seed, 0), np.arange(2))
    cross_entropy(model(inputs), targets).backward()
    optimizer.step()  # the momentum exists from the first step on
    accelerator = Accelerator(cpu=True)
    accelerator.prepare(model, optimizer)

    def turn() -> float:
        with tempfile.TemporaryDirectory(dir=job.out) as folder:
            start = time.perf_counter()
            accelerator.save_state(str(Path(folder) / "state"))
            seconds = time.perf_counter() - start
            shutil.rmtree(Path(folder) / "state")
        return seconds

    return turn


if __name__ == "__main__":
    serve(turn_of, "accelerate", "torch")
