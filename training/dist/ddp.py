"""Data parallel training by torch's DistributedDataParallel, and on one rank without it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from torch import nn
from torch.nn.parallel import DistributedDataParallel

from training.dist.ranks import Ranks


class Alone:
    """One rank: it holds every sample, and its gradients are everybody's."""

    def __init__(self, model: nn.Module, global_batch: int) -> None:
        self.module, self.ways, self.mine, self.weight = model, 1, range(1), 1 / global_batch

    def part(self, *, last: bool) -> AbstractContextManager[object]:
        return nullcontext()

    def reduce(self) -> None:
        """Nothing to do."""


class Ddp:
    """Each rank holds one share; DDP averages the gradients while the last part runs backward.

    Buffers are not sent at every step: they take no part in training; evaluation and checkpoints use those of rank 0.
    """

    def __init__(self, model: nn.Module, ranks: Ranks, global_batch: int) -> None:
        self.module = DistributedDataParallel(
            model,
            device_ids=[ranks.device] if ranks.device.type == "cuda" else None,
            gradient_as_bucket_view=True,
            forward_sync_buffers=False,
        )
        self.ways, self.mine = ranks.world, range(ranks.rank, ranks.rank + 1)
        self.weight = ranks.world / global_batch  # DDP divides by the world size

    def part(self, *, last: bool) -> AbstractContextManager[object]:
        """no_sync stands around forward too: DDP decides there whether this backward reduces."""
        return nullcontext() if last else self.module.no_sync()

    def reduce(self) -> None:
        """Done by DDP during the last part's backward."""
