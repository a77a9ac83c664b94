"""How ranks share a step: which shares of a batch a rank has, and how gradients are reduced."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

import torch
from torch import Tensor, nn

from training.data.batches import MicroBatch
from training.parallel.process_group import Ranks

Loss = Callable[[Tensor, Tensor], Tensor]


class Precision(Protocol):
    """The numbers that a step computes with, see `training.precision`."""

    def autocast(self) -> AbstractContextManager[object]:
        """Around forward and loss."""
        ...

    def backward(self, loss: Tensor) -> None:
        """The backward pass, the loss scaled where the format needs it."""
        ...


class Parallel:
    """How a step is trained on several ranks; this base: every rank holds the whole model.

    model: has the parameters. module: runs forward. dp_size: into how many shares a global batch is split, dp_shards:
    those of this rank. weight: factor of a micro-batch's summed loss, such that the reduced gradient is that of the
    mean over the global batch. eval_shard: (first, stride) of the held-out samples that this rank evaluates.
    eval_copies: how many ranks evaluate the same samples. stride: after every so many steps all ranks hold the same
    state. sharded: no rank holds the whole state. times_forward: every rank runs the whole forward pass, so that its
    time shows a slow rank.
    """

    stride = 1
    eval_copies = 1
    sharded = False
    times_forward = True

    def __init__(self, model: nn.Module, ranks: Ranks, global_batch: int) -> None:
        self.model, self.module, self.ranks = model, model, ranks
        self.dp_size, self.dp_shards = ranks.world, range(ranks.rank, ranks.rank + 1)
        self.eval_shard = (ranks.rank, ranks.world)
        self.weight = 1 / global_batch

    def settle(self, optimizer: torch.optim.Optimizer) -> None:
        """Before the first step: adapts the optimizer."""

    def forward_backward(self, part: MicroBatch, precision: Precision, loss: Loss) -> Tensor:
        """Forward and backward of a part; loss: its summed loss from the model's outputs and the labels. Returns that
        loss, as `copies` ranks do."""
        with self.part(last=part.last):
            with precision.autocast():
                summed = loss(self.module(part.inputs).float(), part.labels)
            precision.backward(summed * self.weight)
        return summed.detach()

    def evaluate_forward(self, inputs: Tensor) -> Tensor | None:
        """The model's outputs for held-out samples, on a rank that has them; all ranks call it equally often."""
        return self.model(inputs)

    def broadcast_buffers(self, buffers: list[Tensor]) -> None:
        """Gives all ranks that hold the same buffers (BatchNorm's statistics) the values of the first of them."""
        self.ranks.broadcast_buffers(buffers, None)

    def part(self, *, last: bool) -> AbstractContextManager[object]:
        """Around forward and backward of a part; last: it is the last of its share."""
        return nullcontext()

    def reduce(self, step: int) -> None:
        """After the last part of a step, counted from 1: the gradients are those of the global batch on every rank.
        Of what a checkpoint holds it may change buffers and what `shared` and `own` name, and nothing else."""

    def stepped(self, step: int, optimizer: torch.optim.Optimizer) -> None:
        """After the optimizer's step."""

    def shared(self) -> Mapping[str, Tensor]:
        """Further live tensors, equal on all ranks, that a checkpoint must hold."""
        return {}

    def own(self) -> Mapping[str, Tensor]:
        """Live tensors of this rank alone that a checkpoint must hold."""
        return {}
