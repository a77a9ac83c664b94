"""Accuracy and loss over the held-out samples, shared among the ranks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from training.data.images import ImageSet
from training.dist import Ranks
from training.precision import Precision


@dataclass(frozen=True, kw_only=True)
class Score:
    """Share of right answers, 0 to 1, and mean loss."""

    accuracy: float
    loss: float


def evaluate(
    model: nn.Module, data: ImageSet, ranks: Ranks, precision: Precision, batch: int, stop: Callable[[], bool]
) -> Score | None:
    """Each rank takes every world-th sample, `batch` at a time. None where all agreed to stop in the middle."""
    ranks.same_buffers(model)
    model.eval()
    try:
        sums = count_up(model, data, ranks, precision, batch, stop)
    finally:
        model.train()
    if sums is None:
        return None
    right, loss = ranks.total(sums).tolist()
    return Score(accuracy=right / len(data.held_out), loss=loss / len(data.held_out))


@torch.inference_mode()
def count_up(
    model: nn.Module, data: ImageSet, ranks: Ranks, precision: Precision, batch: int, stop: Callable[[], bool]
) -> Tensor | None:
    """This rank's number of right answers and summed loss [2], without a device synchronisation on the way."""
    images, labels = (t[ranks.rank :: ranks.world] for t in (data.held_out.images, data.held_out.labels))
    sums = torch.zeros(2, dtype=torch.float64, device=ranks.device)
    most = -(-len(data.held_out) // ranks.world)  # samples of the rank that has most: all ranks vote equally often
    for start in range(0, most, batch):
        vote = ranks.vote(stop())
        piece, answers = images[start : start + batch], labels[start : start + batch]
        if len(answers):
            with precision.autocast():
                logits = model(data.normalised(piece)).float()
            loss = functional.cross_entropy(logits, answers, reduction="sum")
            sums += torch.stack([(logits.argmax(1) == answers).sum(), loss])
        if any(vote.result()):
            return None
    return sums
