"""Accuracy and loss over the held-out samples, shared among the ranks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from training.data import DataSet
from training.dist import Ranks
from training.objective import cross_entropy, right
from training.precision import Precision


@dataclass(frozen=True, kw_only=True)
class Score:
    """Share of right answers, 0 to 1, and mean loss."""

    accuracy: float
    loss: float


def evaluate(
    model: nn.Module, data: DataSet, ranks: Ranks, precision: Precision, batch: int, stop: Callable[[], bool]
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
    answered, loss = ranks.total(sums).tolist()
    return Score(accuracy=answered / len(data.held_out), loss=loss / len(data.held_out))


@torch.inference_mode()
def count_up(
    model: nn.Module, data: DataSet, ranks: Ranks, precision: Precision, batch: int, stop: Callable[[], bool]
) -> Tensor | None:
    """This rank's number of right answers and summed loss [2], without a device synchronisation on the way."""
    mine = np.arange(ranks.rank, len(data.held_out), ranks.world)
    sums = torch.zeros(2, dtype=torch.float64, device=ranks.device)
    most = -(-len(data.held_out) // ranks.world)  # samples of the rank that has most: all ranks vote equally often
    for start in range(0, most, batch):
        vote = ranks.vote(stop())
        piece = mine[start : start + batch]
        if len(piece):
            inputs, answers = data.evaluation(piece)
            with precision.autocast():
                outputs = model(inputs).float()
            sums += torch.stack([right(outputs, answers), cross_entropy(outputs, answers)])
        if any(vote.result()):
            return None
    return sums
