"""Ranks, and the ways to share a step among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from training.config import run
from training.config.data import Batching
from training.config.errors import refusal
from training.parallel.base import Parallel
from training.parallel.compression import HALF, Flat, PowerSgd
from training.parallel.consensus import Agreement
from training.parallel.ddp import Ddp
from training.parallel.deterministic import Shards
from training.parallel.local_sgd import Local
from training.parallel.process_group import Ranks, Rows, connect

__all__ = ["Agreement", "Parallel", "Ranks", "Rows", "connect", "parallel", "warm_up"]

WARM_UP_STEPS = 2


def parallel(
    config: run.Parallel,
    model: nn.Module,
    ranks: Ranks,
    batching: Batching,
    *,
    seed: int,
    steps: int,
    clip_norm: float,
    start_seconds: int,
) -> Parallel:
    """How the ranks share a step, as the job says; raises JobError where they cannot share its batch.

    steps: of the whole run. clip_norm: of the optimizer. start_seconds: how long ranks wait for each other at first.
    """
    batch = batching.global_batch
    if isinstance(config, run.Fsdp | run.Tensor | run.Pipeline):
        return sharded(config, model, ranks, batching, clip_norm, start_seconds)
    logical_shards = config.shards if isinstance(config, run.Ddp) else 0
    shares, key = (logical_shards, "parallel.shards") if logical_shards else (batch, "data.global_batch")
    if ranks.world > shares:
        raise refusal(key, f"{shares} cannot be shared by {ranks.world} ranks")
    if logical_shards:
        return Shards(model, ranks, logical_shards, batch)
    if ranks.world == 1:
        return Parallel(model, ranks, batch)
    if isinstance(config, run.LocalSgd):
        return Local(model, ranks, batch, every=config.every, after=config.after, steps=steps)
    return data_parallel(config, model, ranks, batch, seed)


def data_parallel(config: run.Ddp, model: nn.Module, ranks: Ranks, batch: int, seed: int) -> Parallel:
    """Whole models on every rank, whose gradients are sent as they are, in half precision, or as thin matrices."""
    if config.compress == "powersgd":
        return PowerSgd(model, ranks, batch, config.rank, seed)
    if config.compress != "none":
        return Flat(model, ranks, batch, HALF[config.compress])
    return Ddp(model, ranks, batch)


def sharded(
    config: run.Fsdp | run.Tensor | run.Pipeline,
    model: nn.Module,
    ranks: Ranks,
    batching: Batching,
    clip_norm: float,
    start_seconds: int,
) -> Parallel:
    """A way in which no rank holds the whole model; what it needs of torch is imported only then."""
    if ranks.world == 1:
        raise refusal("parallel.kind", f"{config.kind} needs more than one rank; set ddp")
    from training.parallel.fsdp import Fsdp
    from training.parallel.mesh import mesh
    from training.parallel.pipeline import Pipeline
    from training.parallel.tensor import Tensor

    table = mesh(config, ranks, batching, clip_norm=clip_norm, start_seconds=start_seconds)
    if isinstance(config, run.Fsdp):
        return Fsdp(model, ranks, batching.global_batch, table)
    if isinstance(config, run.Tensor):
        return Tensor(model, ranks, batching.global_batch, table)
    return Pipeline(config, model, ranks, batching.global_batch, table)


def warm_up(model: nn.Module, state: Mapping[str, Tensor], step: Callable[[], object]) -> None:
    """Throws two forward and backward passes away, leaving the model, and the tensors `state` besides, as they were.

    DDP orders its buckets anew after the first backward. A resumed process that did so in its first real step would sum
    that step in another order than a process that never stopped, and differ in the last bits from three ranks on. So
    every process, fresh or resumed, does it before the state is loaded.
    """
    live = {**model.state_dict(), **state}
    before = {name: tensor.clone() for name, tensor in live.items()}
    for _ in range(WARM_UP_STEPS):
        step()
        model.zero_grad(set_to_none=True)
    with torch.no_grad():
        for name, tensor in live.items():
            tensor.copy_(before[name])
