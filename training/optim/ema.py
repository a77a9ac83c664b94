"""An exponential moving average of the weights (Polyak and Juditsky 1992), for evaluation and for use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class Average:
    """What the weights and the norms' statistics were on average, newer steps weighing more. With keep = 0 there is
    none, and nothing is done."""

    def __init__(self, model: nn.Module, keep: float) -> None:
        live = {name: t for name, t in model.state_dict().items() if t.is_floating_point()} if keep else {}
        self.tensors = {name: t.detach().clone() for name, t in live.items()}
        self._live, self._mean = (list(map(here, named.values())) for named in (live, self.tensors))
        self._keep = keep

    def update(self, step: int) -> None:
        """After a step, counted from 1. Early on less is kept, so that the first weights are soon forgotten."""
        if self.tensors:
            keep = min(self._keep, step / (step + 9))
            torch._foreach_lerp_(self._mean, self._live, 1 - keep)  # pyright: ignore[reportPrivateImportUsage]

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The model has the average in its parameters and buffers, for as long as this lasts."""
        if not self.tensors:
            yield
            return
        weights = [t.clone() for t in self._live]
        self._put(self._mean)
        try:
            yield
        finally:
            self._put(weights)

    @torch.no_grad()
    def _put(self, values: list[Tensor]) -> None:
        torch._foreach_copy_(self._live, values)  # pyright: ignore[reportPrivateImportUsage]


def here(tensor: Tensor) -> Tensor:
    """This rank's part of a tensor that is cut over the ranks (a DTensor), sharing its memory; others as they are."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor  # pyright: ignore[reportAttributeAccessIssue]
