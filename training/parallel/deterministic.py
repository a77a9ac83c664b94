"""Gradients of fixed logical shards, summed in shard order: the same bits for every number of ranks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import nn

from training.parallel.base import Parallel
from training.parallel.process_group import Ranks


class Shards(Parallel):
    """A global batch in `count` logical shards; a rank works through its own, and every rank adds up all in order.

    Buffers (BatchNorm's statistics) are averaged over the shards in the same way. Costs memory and traffic of one set
    of gradients a shard, against DDP's one a rank: for runs that must not depend on how many nodes are left.
    """

    def __init__(self, model: nn.Module, ranks: Ranks, count: int, global_batch: int) -> None:
        super().__init__(model, ranks, global_batch)
        self.dp_size = count
        self._owners = [
            range(rank * count // ranks.world, (rank + 1) * count // ranks.world) for rank in range(ranks.world)
        ]
        self.dp_shards = self._owners[ranks.rank]
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        self._buffers = [b for b in model.buffers() if b.is_floating_point()]
        size = sum(t.numel() for t in (*self._parameters, *self._buffers))
        self._all = torch.zeros(ranks.world, max(map(len, self._owners)), size, device=ranks.device)
        self._rows = torch.zeros_like(self._all[0])
        self._alone = ranks.world == 1
        self._done = 0
        self._before: list[torch.Tensor] = []

    @contextmanager
    def part(self, *, last: bool) -> Iterator[None]:
        """Around forward and backward of a part; a shard's last one puts its gradients and buffers aside."""
        if not self._before:
            self._before = [b.clone() for b in self.module.buffers()]
        yield
        if last:
            tensors = [p.grad if p.grad is not None else torch.zeros_like(p) for p in self._parameters] + self._buffers
            torch.cat([t.flatten() for t in tensors], out=self._rows[self._done])
            self._done += 1
            self.module.zero_grad(set_to_none=True)
            if self._done < len(self.dp_shards):
                self._restore()

    def _restore(self) -> None:
        """Every shard starts from the buffers that the step found."""
        for buffer, before in zip(self.module.buffers(), self._before, strict=True):
            buffer.copy_(before)

    def reduce(self, step: int) -> None:
        """Sums the shards' gradients and averages their buffers, in shard order."""
        if self._alone:
            self._all[0].copy_(self._rows)
        else:
            dist.all_gather_into_tensor(self._all.flatten(0, 1), self._rows)
        rows = [self._all[rank, place] for rank, shards in enumerate(self._owners) for place in range(len(shards))]
        total = rows[0].clone()
        for row in rows[1:]:
            total += row
        pieces = iter(total.split([t.numel() for t in (*self._parameters, *self._buffers)]))
        for parameter in self._parameters:
            parameter.grad = torch.empty_like(parameter).copy_(next(pieces).view_as(parameter))
        for buffer, before in zip(self.module.buffers(), self._before, strict=True):
            # a counter of batches counts steps here: how many parts a rank saw depends on the number of ranks
            buffer.copy_(next(pieces).view_as(buffer) / self.dp_size if buffer.is_floating_point() else before + 1)
        self._before, self._done = [], 0
