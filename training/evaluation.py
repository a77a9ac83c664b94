"""Accuracy and loss over the held-out samples, shared among the ranks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from training.data import DataSet
from training.optim.loss import cross_entropy, right
from training.parallel import Parallel
from training.precision import Precision


@dataclass(frozen=True, kw_only=True)
class Score:
    """Share of right answers, 0 to 1, and mean loss."""

    accuracy: float
    loss: float


def evaluate(
    parallel: Parallel, data: DataSet, precision: Precision, batch: int, stop: Callable[[], bool]
) -> Score | None:
    """Ranks share the held-out samples, `batch` at a time. None where all agreed to stop in the middle."""
    parallel.broadcast_buffers([*parallel.model.buffers()])
    parallel.model.eval()
    try:
        sums = count_up(parallel, data, precision, batch, stop)
    finally:
        parallel.model.train()
    if sums is None:
        return None
    rows = parallel.ranks.rows(sums).result()
    answered, loss = (sum(numbers) / parallel.eval_copies for numbers in zip(*rows, strict=True))
    return Score(accuracy=answered / len(data.held_out), loss=loss / len(data.held_out))


@torch.inference_mode()
def count_up(
    parallel: Parallel, data: DataSet, precision: Precision, batch: int, stop: Callable[[], bool]
) -> Tensor | None:
    """This rank's number of right answers and summed loss [2], without a device synchronisation on the way."""
    first, every = parallel.eval_shard
    indices = np.arange(first, len(data.held_out), every)
    sums = torch.zeros(2, dtype=torch.float64, device=parallel.ranks.device)
    most = -(-len(data.held_out) // every)  # samples of the rank that has most: all vote, and run, equally often
    for start in range(0, most, batch):
        vote = parallel.ranks.vote(stop())
        piece = indices[start : start + batch]
        inputs, answers = data.evaluation(piece if len(piece) else np.arange(1))
        with precision.autocast():
            outputs = parallel.evaluate_forward(inputs)
        if outputs is not None and len(piece):
            sums += torch.stack([right(outputs, answers), cross_entropy(outputs.float(), answers)])
        if any(vote.result()):
            return None
    return sums
