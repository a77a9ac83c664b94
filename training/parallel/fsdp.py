"""Parameters, gradients and optimizer state sharded over the ranks, by torch's fully_shard."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, fully_shard

from training.parallel.base import Parallel
from training.parallel.process_group import Ranks


class Fsdp(Parallel):
    """A layer's parameters are whole only while it runs (S. Rajbhandari et al., ZeRO, SC 2020, stage 3)."""

    sharded = True

    def __init__(self, model: nn.Module, ranks: Ranks, global_batch: int, mesh: DeviceMesh) -> None:
        super().__init__(model.to(memory_format=torch.contiguous_format), ranks, global_batch)
        for unit in units(model):
            fully_shard(unit, mesh=mesh["data"])
        sharded = fully_shard(model, mesh=mesh["data"])
        assert isinstance(sharded, FSDPModule)
        self._sharded = sharded
        self.weight = ranks.world / global_batch  # fully_shard divides by the number of ranks

    def evaluate_forward(self, inputs: Tensor) -> Tensor | None:
        """The outputs. After a forward alone torch keeps the outermost parameters whole, and the next forward would not
        see that an average of the weights has left their place."""
        outputs = super().evaluate_forward(inputs)
        self._sharded.reshard()
        return outputs

    def part(self, *, last: bool) -> AbstractContextManager[object]:
        self._sharded.set_requires_gradient_sync(last)
        return nullcontext()


def units(model: nn.Module) -> Iterator[nn.Module]:
    """What is made whole at a time: the model's children, and the items of those that are lists of blocks."""
    for child in model.children():
        if isinstance(child, nn.Sequential | nn.ModuleList):
            yield from (block for block in child if any(True for _ in block.parameters()))
        elif any(True for _ in child.parameters()) and not isinstance(child, nn.Embedding):
            yield child  # an embedding may be tied to the last layer: it stays with the whole model
