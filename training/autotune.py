"""`compute = "auto"`: precision and memory format, chosen by a short trial of this model on this device.

Which is faster differs by CPU: bf16 doubles the speed of some and slows others down, and the same is true of channels
last. So it is measured, once a run: the choice is kept in the run's folder, and a resumed run keeps its bits.
"""

from __future__ import annotations

import json
import time
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from math import inf
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from training import atomic, strict
from training.config.errors import refusal
from training.config.job import Precision as PrecisionConfig
from training.data import DataSet
from training.data.transforms.draw import Draw
from training.optim.loss import cross_entropy
from training.parallel import Ranks
from training.precision import Precision

SECONDS = 2.5  # no pass is begun that is not expected to end by then; a first one may take longer, 3 s are promised
ONE_ALONE = 64  # pixels: of one smaller image BatchNorm may see a single value a channel, which it refuses
REPEATS = 3  # of a mode's further passes, modes alternating
REPEATS_SECONDS = (
    0.3  # of all modes where passes are short: a processor stalls, and changes its speed, for milliseconds
)
GROWTH = 1.25  # at least: a batch that may grow by less is not looked at once more
SLOWER = 1.3  # a mode that takes longer than this many times the plain one is not repeated
GAIN = 0.9  # a mode must take less than this share of the plain mode's time: noise must not make it slower
COMPUTES = ("fp32", "tf32", "bf16", "fp16")
MODE_BYTES = 4096  # of what was chosen
CPU_BF16 = ("avx512_bf16", "amx_bf16", "bf16", "sve_bf16")  # instructions of x86 and Arm; emulated it is never faster


@dataclass(frozen=True, kw_only=True)
class Mode:
    """What a step computes with, and the layout of images. trial_seconds: of the trial that chose it, if one did."""

    compute: str
    channels_last: bool
    trial_seconds: float | None = field(default=None, compare=False)

    @property
    def memory_format(self) -> torch.memory_format:
        return torch.channels_last if self.channels_last else torch.contiguous_format


PLAIN = Mode(compute="fp32", channels_last=False)


def settled(
    config: PrecisionConfig,
    ranks: Ranks,
    model: nn.Module,
    data: DataSet,
    *,
    channels_last: bool,
    fp16: bool,
    batch: int,
    seed: int,
    file: Path,
) -> Mode:
    """The job's own mode; with "auto" the run's earlier one, or the fastest on the slowest rank; for every rank.

    channels_last: of the job's own mode. fp16: whether the job may train in it. batch: samples that a rank runs through
    the model at once. file: where the choice is kept.
    """
    if config.compute != "auto":
        return Mode(compute=config.compute, channels_last=channels_last)
    earlier = read(file)
    known = next((Mode(**mode) for mode in ranks.gather(earlier and asdict(earlier)) if mode), None)
    if known is None:
        began = time.perf_counter()
        inputs, targets = data.training(Draw(seed, 0), np.arange(min(len(data.train), batch)))
        modes = candidates(ranks.device, images=inputs.ndim == 4, fp16=fp16)
        passes = Passes(model, inputs, targets, ranks.device, deterministic=config.deterministic)
        measured = ranks.gather((trial(passes, modes), time.perf_counter() - began))
        slowest = [max(times) for times in zip(*(times for times, _ in measured), strict=True)]
        known = replace(chosen(modes, slowest), trial_seconds=round(max(seconds for _, seconds in measured), 3))
    if ranks.local_rank == 0:
        file.parent.mkdir(parents=True, exist_ok=True)
        atomic.write(file, (json.dumps(asdict(known)) + "\n").encode())
    return known


def chosen(modes: list[Mode], seconds: list[float]) -> Mode:
    """The fastest; the plain mode where none is clearly faster."""
    took = dict(zip(modes, seconds, strict=True))
    best = min(modes, key=took.__getitem__)
    return best if took[best] < GAIN * took[PLAIN] else PLAIN


def read(path: Path) -> Mode | None:
    """What an earlier start chose; raises JobError where that cannot be read."""
    try:
        with strict.regular(path) as file:
            mode = Mode(**strict.document(file.read(MODE_BYTES)))
        if mode.compute not in COMPUTES or type(mode.channels_last) is not bool:
            raise ValueError("no such mode")
        return mode
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, strict.NotRegularFileError) as error:
        advice = "remove it: the trial is made again, and may choose otherwise; or name what this run computes with"
        raise refusal("precision.compute", f"{path} cannot be read; {advice}") from error


def candidates(device: torch.device, *, images: bool, fp16: bool) -> list[Mode]:
    """The modes worth trying: the plain one first, then the likeliest to be fast, since time may run out. fp16: whether
    the job may train in it."""
    if device.type == "cuda":
        ampere = torch.cuda.is_bf16_supported(including_emulation=False)  # or newer: bf16 and TF32 came together
        half = ["fp16"] if fp16 else []
        computes = ["bf16", "tf32", "fp32"] if ampere else [*half, "fp32"]
    else:
        able = torch.cpu.get_capabilities()
        computes = [*(["bf16"] if any(able.get(name) for name in CPU_BF16) else []), "fp32"]
    formats = (True, False) if images else (False,)
    others = [Mode(compute=compute, channels_last=last) for last in formats for compute in computes]
    return [PLAIN, *(mode for mode in others if mode != PLAIN)]


def trial(passes: Passes, modes: list[Mode]) -> list[float]:
    """Least seconds of a forward and backward pass in each mode; infinite for one that was not reached.

    The plain mode is first, so when time runs out nothing slower is chosen; where its first pass takes longer than
    SECONDS, that is all of the trial, and the plain mode stays. All modes pass over as many samples.
    """
    count, plain = passes.grown(SECONDS / len(modes) / (2 + REPEATS))  # two passes to look at a mode, then the repeats
    least = {PLAIN: plain}
    for mode in modes[1:]:
        least[mode] = passes.look(mode, count, 2 * plain)
    share = REPEATS_SECONDS / len(modes)
    able = {mode: REPEATS if least[mode] <= SLOWER * plain else 0 for mode in modes}
    repeats = {mode: max(number, int(share / least[mode])) for mode, number in able.items()}
    for repeat in range(max(repeats.values()) if len(modes) > 1 else 0):
        for mode in [mode for mode in modes if repeat < repeats[mode]]:
            least[mode] = min(least[mode], passes.run(mode, count, least[mode]))
    return [*least.values()]


class Passes:
    """Passes of a copy of the model over the first of the samples, until SECONDS are over."""

    def __init__(
        self, model: nn.Module, inputs: Tensor, targets: Tensor, device: torch.device, *, deterministic: bool = False
    ) -> None:
        self._end = time.monotonic() + SECONDS
        self._model, self._device, self._deterministic = deepcopy(model), device, deterministic
        self._inputs, self._targets = inputs, targets

    def run(self, mode: Mode, count: int, expected: float) -> float:
        """Seconds of a pass; infinite where it is not expected to end in time, and so not begun, or has no memory."""
        if time.monotonic() + expected > self._end:
            return inf
        try:
            precision = Precision(mode.compute, self._device, deterministic=self._deterministic)
            return timed(precision, self._model, self._inputs[:count], self._targets[:count], mode, self._device)
        except torch.OutOfMemoryError:
            self._model.zero_grad(set_to_none=True)
            return inf

    def look(self, mode: Mode, count: int, expected: float) -> float:
        """Seconds of a second pass: the first warms up, since kernels are chosen and memory is taken."""
        return self.run(mode, count, self.run(mode, count, expected))

    def grown(self, longest: float) -> tuple[int, float]:
        """The samples of the modes' passes, and the plain mode's seconds for them. Which mode is the faster changes
        with the batch, so it grows from a sample or two towards all of them, as far as a plain pass has memory, which
        it takes most of, and is expected to last no longer than `longest` seconds."""
        count, seconds, most = 0, 0.0, 1 if len(self._inputs) == 1 or self._inputs.shape[-1] >= ONE_ALONE else 2
        while most >= GROWTH * count:
            looked = self.look(PLAIN, most, 0)
            if looked == inf and count:
                break
            before, took = min(seconds, longest), min(looked, longest)
            a_sample = max(took - before, took / 4) / (most - count)  # a pass has a cost of its own, too
            count, seconds = most, looked
            most = min(len(self._inputs), count + int((longest - took) / a_sample))
        return count, seconds


def timed(
    precision: Precision, model: nn.Module, inputs: Tensor, targets: Tensor, mode: Mode, device: torch.device
) -> float:
    """Seconds of a forward and backward pass; putting model and inputs into the mode's layout is not counted."""
    model.to(memory_format=mode.memory_format)
    if inputs.ndim == 4:
        inputs = inputs.to(memory_format=mode.memory_format)
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
