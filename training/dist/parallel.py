"""How ranks share a step: which shares of it a rank holds, and how the gradients become everybody's."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from torch import nn


class Parallel(Protocol):
    """What the loop needs of a way to train on several ranks.

    module: what runs forward. ways, mine: a global batch is cut into `ways` shares, of which this rank holds `mine`.
    weight: factor of a part's summed loss such that the reduced gradient is that of the mean over the global batch.
    """

    @property
    def module(self) -> nn.Module: ...

    ways: int
    mine: range
    weight: float

    def part(self, *, last: bool) -> AbstractContextManager[object]:
        """Around forward and backward of a part; `last`: it is the last of its share."""
        ...

    def reduce(self) -> None:
        """After the last part: the parameters' gradients are those of the global batch, on every rank."""
        ...
