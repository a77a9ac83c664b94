"""How ranks share a step: which shares of it a rank holds, and how the gradients become everybody's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext

from torch import Tensor, nn

from training.dist.ranks import Ranks
from training.precision import Precision



class Parallel:
    """What the loop needs of a way to train on several ranks; here every rank holds the whole model.

    model: what has the parameters. module: what runs forward. ways, mine: a global batch is cut into `ways` shares, of
    which this rank holds `mine`. weight: factor of a part's summed loss such that the reduced gradient is that of the
    mean over the global batch. seat: this rank judges every seat[1]-th held-out sample from seat[0]; copies: so many
    ranks judge the same ones. stride: all ranks hold the same state after every so many steps. cut: no rank holds
    the whole state.
    """

    stride = 1
    copies = 1
    cut = False

    def __init__(self, model: nn.Module, ranks: Ranks, global_batch: int) -> None:
        self.model, self.module, self.ranks = model, model, ranks
        self.ways, self.mine = ranks.world, range(ranks.rank, ranks.rank + 1)
        self.seat = (ranks.rank, ranks.world)
        self.weight = 1 / global_batch

    def learn(self, inputs: Tensor, last: bool, precision: Precision, loss: Callable[[Tensor], Tensor]) -> Tensor:
        """Forward and backward of a part; loss: its summed loss from the model's outputs. Returns that loss.

        last: it is the last part of its share.
        """
        with self.part(last=last):
            with precision.autocast():
                summed = loss(self.module(inputs).float())
            precision.backward(summed * self.weight)
        return summed.detach()

    def part(self, *, last: bool) -> AbstractContextManager[object]:
        """Around forward and backward of a part."""
        return nullcontext()

    def reduce(self) -> None:
        """After the last part: the parameters' gradients are those of the global batch, on every rank."""

    def stepped(self, step: int, optimizer: object) -> None:
        """After the optimizer's step, counted from 1."""

    def own(self) -> Mapping[str, Tensor]:
        """Live tensors of this rank alone that a checkpoint must hold."""
        return {}
