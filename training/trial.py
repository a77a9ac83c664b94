"""`compute = "auto"`: precision and memory format, chosen by a short trial of this model on this device.

Which is faster differs by CPU: bf16 doubles the speed of some and slows others down, and the same is true of channels
last. So it is measured, once a run: the choice is kept in the run's folder, and a resumed run keeps its bits.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from training.config import Job
from training.data import DataSet
from training.data.augment import Draw
from training.dist import Ranks
from training.objective import cross_entropy
from training.precision import Precision
from training.result import replace_text

SECONDS = 3.0  # of the whole trial
ROUNDS = 3  # timed ones at least, after one that warms up
GAIN = 0.97  # a mode must take less than this share of the plain mode's time: noise must not make it slower


@dataclass(frozen=True, kw_only=True)
class Mode:
    """What a step computes with, and the layout of images."""

    compute: str
    channels_last: bool

    @property
    def memory_format(self) -> torch.memory_format:
        return torch.channels_last if self.channels_last else torch.contiguous_format


PLAIN = Mode(compute="fp32", channels_last=False)


def settled(job: Job, ranks: Ranks, model: nn.Module, data: DataSet) -> Mode:
    """The job's own mode; with "auto" the run's earlier one, or the fastest on the slowest rank; for every rank."""
    asked = job.precision.compute
    if asked != "auto":
        return Mode(compute=asked, channels_last=getattr(job.model, "channels_last", False))
    path = job.out / "compute.json"
    known = next((mode for mode in ranks.gather(read(path)) if mode), None)
    if known is None:
        samples = min(len(data.train), job.data.micro_batch or max(1, job.data.global_batch // ranks.world))
        inputs, targets = data.training(Draw(job.seed, 0), np.arange(samples))
        modes = candidates(ranks.device, images=inputs.ndim == 4)
        mine = trial(job, model, inputs, targets, modes, ranks.device)
        slowest = [max(times) for times in zip(*ranks.gather(mine), strict=True)]
        known = chosen(modes, slowest)
    if ranks.local_rank == 0:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_text(path, json.dumps(asdict(known)) + "\n")
    return known


def chosen(modes: list[Mode], seconds: list[float]) -> Mode:
    """The fastest; the plain mode where none is clearly faster."""
    took = dict(zip(modes, seconds, strict=True))
    best = min(modes, key=took.__getitem__)
    return best if took[best] < GAIN * took[PLAIN] else PLAIN


def read(path: Path) -> Mode | None:
    return Mode(**json.loads(path.read_text())) if path.is_file() else None


def candidates(device: torch.device, *, images: bool) -> list[Mode]:
    """The modes worth trying, the plain one first; fp16 only where the device has no bf16."""
    computes = ["fp32", "bf16"]
    if device.type == "cuda":
        half = "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp16"
        computes = ["fp32", "tf32", half]
    formats = (False, True) if images else (False,)
    return [Mode(compute=compute, channels_last=last) for compute in computes for last in formats]


def trial(
    job: Job, model: nn.Module, inputs: Tensor, targets: Tensor, modes: list[Mode], device: torch.device
) -> list[float]:
    """Least seconds of a forward and backward pass in each mode, taking turns, within SECONDS altogether.

    The batch is cut until the first round fits: so a model that takes seconds a step is tried on a few samples. The
    model is left as it was.
    """
    end = time.monotonic() + SECONDS
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    one = min(timed(job, model, inputs[:1], targets[:1], PLAIN, device) for _ in range(2))
    count = max(1, min(len(inputs), int((end - time.monotonic()) / one / len(modes) / (ROUNDS + 1))))
    inputs, targets = inputs[:count], targets[:count]
    least = dict.fromkeys(modes, float("inf"))
    for turn in range(ROUNDS + 1):
        if turn > 1 and time.monotonic() > end:
            break
        for mode in modes:
            seconds = timed(job, model, inputs, targets, mode, device)
            if turn:  # the first warms up: kernels are chosen, memory is taken
                least[mode] = min(least[mode], seconds)
    model.to(memory_format=torch.contiguous_format)
    model.load_state_dict(before)
    return list(least.values())


def timed(job: Job, model: nn.Module, inputs: Tensor, targets: Tensor, mode: Mode, device: torch.device) -> float:
    """Seconds of a forward and backward pass; putting model and inputs into the mode's layout is left out."""
    precision = Precision(job, device, mode.compute)
    model.to(memory_format=mode.memory_format)
    if inputs.ndim == 4:
        inputs = inputs.contiguous(memory_format=mode.memory_format)
    wait(device)
    start = time.perf_counter()
    with precision.autocast():
        loss = cross_entropy(model(inputs).float(), targets)
    loss.backward()
    wait(device)
    seconds = time.perf_counter() - start
    model.zero_grad(set_to_none=True)
    return seconds


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
