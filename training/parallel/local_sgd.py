"""Local SGD: each rank steps on its own and weights are averaged every few steps, for slow links."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from training.parallel.compression import Flat
from training.parallel.ordered_sum import flatten, ordered_sum, unflatten
from training.parallel.process_group import Ranks


class Local(Flat):
    """Post-local SGD (T. Lin, S. U. Stich, K. K. Patel, M. Jaggi, Don't Use Large Mini-Batches, Use Local SGD, ICLR
    2020): after `after` steps of plain data parallel training each rank steps alone, and every `every` steps the ranks
    average their weights, and the optimizer's moments too, so that a checkpoint is one state for all."""

    def __init__(
        self, model: nn.Module, ranks: Ranks, global_batch: int, *, every: int, after: int, steps: int
    ) -> None:
        super().__init__(model, ranks, global_batch, None)
        self.stride, self._after, self._steps = every, after, steps

    def reduce(self, step: int) -> None:
        if step <= self._after:
            super().reduce(step)
            return
        torch._foreach_mul_(self.gradients(), self.ranks.world)  # pyright: ignore[reportPrivateImportUsage]

    @torch.no_grad()
    def stepped(self, step: int, optimizer: torch.optim.Optimizer) -> None:
        if step > self._after and (step % self.stride == 0 or step == self._steps):
            everything = [*self._parameters, *moments(optimizer)]
            unflatten(ordered_sum(flatten(everything), None).div_(self.ranks.world), everything)


def moments(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    """The optimizer's tensors that belong to a parameter number by number, in the order of the parameters."""
    ordered = [p for group in optimizer.param_groups for p in group["params"]]
    return [
        value
        for parameter in ordered
        for _, value in sorted(optimizer.state[parameter].items())
        if isinstance(value, Tensor) and value.shape == parameter.shape
    ]
