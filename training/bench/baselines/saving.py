"""What the peers save: the job's model, and SGD with momentum after its first step."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import nn

from training.build import data_of, model_of
from training.config.job import Job
from training.data.transforms.draw import Draw
from training.optim.loss import cross_entropy


def after_a_step(job: Job) -> tuple[nn.Module, torch.optim.Optimizer]:
    """Model and optimizer; the momentum exists from the first step on."""
    data = data_of(job)
    model = model_of(job, data)
    optimizer = torch.optim.SGD(model.parameters(), lr=job.optimizer.lr, momentum=0.9)
    inputs, targets = data.training(Draw(job.seed, 0), np.arange(2))
    cross_entropy(model(inputs), targets).backward()
    optimizer.step()
    return model, optimizer


def timed(job: Job, save: Callable[[str], object]) -> Callable[[], float]:
    """What does a turn: the seconds of one save to a fresh place."""

    def run_round() -> float:
        with tempfile.TemporaryDirectory(dir=job.out) as folder:
            start = time.perf_counter()
            save(str(Path(folder) / "state"))
            return time.perf_counter() - start

    return run_round
