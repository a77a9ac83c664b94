"""The training loss and the number of correct answers; a sample counts once, however many tokens it has."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional


def cross_entropy(outputs: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
    """Summed over samples. outputs: [samples, classes] for labels [samples] or shares of classes [samples, classes], or
    [samples, tokens, vocabulary] for tokens [samples, tokens], of which each sample's mean is taken.

    smoothing: share of a label that is spread over all classes (Szegedy et al. 2016).
    """
    if outputs.ndim == 2:
        return functional.cross_entropy(outputs, targets, reduction="sum", label_smoothing=smoothing)
    flat, answers = outputs.flatten(0, 1), targets.flatten()
    return functional.cross_entropy(flat, answers, reduction="sum", label_smoothing=smoothing) / targets.shape[1]


def right(outputs: Tensor, targets: Tensor) -> Tensor:
    """Number of correct samples; a sample of tokens counts by the share of them that was predicted."""
    hits = outputs.argmax(-1) == targets
    return hits.sum() if hits.ndim == 1 else hits.float().mean(1).sum()
