"""Detects losses that are not finite or jump, without making the host wait for the device."""

from __future__ import annotations

from collections import deque
from statistics import median

import torch
from torch import Tensor

from training.config.run import Health

WINDOW = 20  # reports
LEAST = 5  # reports before a jump is distinguished from noise


class TrainingDivergedError(Exception):
    """The loss diverged; the message says since when and what to do. All ranks raise it at the same step, since they
    check the same sums."""


class Losses:
    """Keeps the losses since the last report on the device, and judges where the loop reads them anyway.

    Loss scaling (fp16) expects such steps and leaves them out by itself: scaled says that it is at work.
    """

    def __init__(self, config: Health, *, scaled: bool) -> None:
        self._finite, self._spike = config.finite and not scaled, config.spike
        self._unread: list[Tensor] = []
        self._sound_at = 0
        self._before: deque[float] = deque(maxlen=WINDOW)

    def watch(self, loss: Tensor) -> None:
        """Takes note of a step's loss on this rank."""
        self._unread.append(loss)

    def sums(self) -> Tensor:
        """[the newest loss, how many since the last report are NaN or infinite]: what the ranks add up for a report."""
        losses, self._unread = torch.stack(self._unread), []
        return torch.stack([losses[-1].nan_to_num(), losses.isfinite().logical_not().sum()])

    def check(self, step: int, loss: float, wrong: float) -> None:
        """Raises TrainingDivergedError after wrong losses on any rank, or where this one is far above those before."""
        if wrong and self._finite:
            said = f"a loss between steps {self._sound_at + 1} and {step} is not finite"
            raise TrainingDivergedError(f"{said}: lower optimizer.lr, or train with compute = bf16 or fp32")
        self._sound_at = step
        usual = median(self._before) if len(self._before) >= LEAST else None
        if self._spike and usual is not None and loss > self._spike * usual:
            said = f"the loss jumped to {loss:.4g} at step {step}, {loss / usual:.1f} times what it was"
            raise TrainingDivergedError(f"{said}: lower optimizer.lr, or raise health.spike = {self._spike:g}")
        self._before.append(loss)
