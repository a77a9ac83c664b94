"""Data parallel training by torch's DistributedDataParallel."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from torch import nn
from torch.nn.parallel import DistributedDataParallel

from training.parallel.base import Parallel
from training.parallel.process_group import Ranks


class Ddp(Parallel):
    """Each rank holds one share; DDP averages the gradients while the last part runs backward.

    Buffers are not sent at every step: they take no part in training; evaluation and checkpoints use those of rank 0.
    """

    def __init__(self, model: nn.Module, ranks: Ranks, global_batch: int) -> None:
        super().__init__(model, ranks, global_batch)
        self.ddp = self.module = DistributedDataParallel(
            model,
            device_ids=[ranks.device] if ranks.device.type == "cuda" else None,
            gradient_as_bucket_view=True,
            forward_sync_buffers=False,
        )
        self.weight = ranks.world / global_batch  # DDP divides by the world size

    def part(self, *, last: bool) -> AbstractContextManager[object]:
        """no_sync stands around forward too: DDP decides there whether this backward reduces."""
        return nullcontext() if last else self.ddp.no_sync()
