"""Layers split over neighbouring ranks, by torch's tensor parallel styles."""

from __future__ import annotations

from fnmatch import fnmatch

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, ParallelStyle, RowwiseParallel, parallelize_module

from training.config.errors import refusal
from training.parallel.base import Parallel
from training.parallel.ordered_sum import flatten, ordered_sum, unflatten
from training.parallel.process_group import Ranks

# A block's wide layer is cut by its outputs and the layer behind it by its inputs, so that one sum is sent a block (M.
# Shoeybi et al., Megatron-LM, 2019); a classifier is cut by its inputs, which every rank has.
STYLES: dict[str, ParallelStyle] = {
    "*.up": ColwiseParallel(),
    "*.down": RowwiseParallel(),
    "classifier": RowwiseParallel(input_layouts=Replicate()),
    "fc": RowwiseParallel(input_layouts=Replicate()),
}


class Tensor(Parallel):
    """The ranks of a row hold one model together and see the same samples; rows share the batch."""

    sharded = True

    def __init__(self, model: nn.Module, ranks: Ranks, global_batch: int, mesh: DeviceMesh) -> None:
        super().__init__(model, ranks, global_batch)
        plan = {
            name: style
            for name, module in model.named_modules()
            for pattern, style in STYLES.items()
            if fnmatch(name, pattern) and isinstance(module, nn.Linear)
        }
        if not plan:
            raise refusal(
                "parallel.kind", f"{type(model).__name__} has no layer that tensor parallelism can split; use fsdp"
            )
        parallelize_module(model, mesh["model"], plan)
        row, self.dp_size, self.eval_copies = mesh["data"].get_local_rank(), mesh["data"].size(), mesh["model"].size()
        self.dp_shards, self.eval_shard = range(row, row + 1), (row, self.dp_size)
        self._column = mesh["data"].get_group()

    def settle(self, optimizer: torch.optim.Optimizer) -> None:
        """Fused optimizers take cut parameters or whole ones in a call, but not both: each kind gets its groups."""
        for group in list(optimizer.param_groups):
            cut = [p for p in group["params"] if isinstance(p, DTensor)]
            if 0 < len(cut) < len(group["params"]):
                group["params"] = [p for p in group["params"] if not isinstance(p, DTensor)]
                optimizer.add_param_group({**group, "params": cut})

    def reduce(self, step: int) -> None:
        reduce_over(self._column, self.model, self.dp_size)


def reduce_over(group: object, model: nn.Module, dp_size: int) -> None:
    """Adds up this rank's gradients, or its parts of them, with those of the ranks that hold the same parameters."""
    if dp_size > 1:
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        local = [grad.to_local() if isinstance(grad, DTensor) else grad for grad in gradients]
        unflatten(ordered_sum(flatten(local), group), local)  # pyright: ignore[reportArgumentType]
