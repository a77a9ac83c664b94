"""Ranks and the ways to share a step among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from training.config import run
from training.config.job import Job
from training.parallel.base import Parallel
from training.parallel.compression import HALF, Flat, PowerSgd
from training.parallel.consensus import Agreement
from training.parallel.ddp import Ddp
from training.parallel.deterministic import Shards
from training.parallel.local_sgd import Local
from training.parallel.process_group import Ranks, Rows, connect

__all__ = ["Agreement", "Parallel", "Ranks", "Rows", "connect", "parallel", "warm_up"]

WARM_UP_STEPS = 2


def parallel(job: Job, model: nn.Module, ranks: Ranks, steps: int) -> Parallel:
    """The way the job asks for; raises JobError where these ranks cannot share its batch. steps: of the whole run."""
    config, batch = job.parallel, job.data.global_batch
    if isinstance(config, run.Fsdp | run.Tensor | run.Pipeline):
        return cut(job, model, ranks)
    logical_shards = config.shards if isinstance(config, run.Ddp) else 0
    shares, key = (logical_shards, "parallel.shards") if logical_shards else (batch, "data.global_batch")
    if ranks.world > shares:
        raise job.refusal(key, f"{shares} cannot be shared by {ranks.world} ranks")
    if logical_shards:
        return Shards(model, ranks, logical_shards, batch)
    if ranks.world == 1:
        return Parallel(model, ranks, batch)
    if isinstance(config, run.LocalSgd):
        return Local(model, ranks, batch, every=config.every, after=config.after, steps=steps)
    return data_parallel(job, config, model, ranks)


def data_parallel(job: Job, config: run.Ddp, model: nn.Module, ranks: Ranks) -> Parallel:
    """Whole models on every rank, whose gradients travel as they are, as halves, or as thin matrices."""
    batch = job.data.global_batch
    if config.compress == "powersgd":
        return PowerSgd(model, ranks, batch, config.rank, job.seed)
    if config.compress != "none":
        return Flat(model, ranks, batch, HALF[config.compress])
    return Ddp(model, ranks, batch)


def cut(job: Job, model: nn.Module, ranks: Ranks) -> Parallel:
    """A way in which no rank holds the whole model; what it needs of torch is loaded only then."""
    if ranks.world == 1:
        raise job.refusal("parallel.kind", f"{job.parallel.kind} needs more than one rank; set ddp")
    from training.parallel.fsdp import Fsdp
    from training.parallel.mesh import mesh
    from training.parallel.pipeline import Pipeline
    from training.parallel.tensor import Tensor

    table = mesh(job, ranks)
    if isinstance(job.parallel, run.Fsdp):
        return Fsdp(model, ranks, job.data.global_batch, table)
    return (Pipeline if isinstance(job.parallel, run.Pipeline) else Tensor)(job, model, ranks, table)


def warm_up(model: nn.Module, kept: Mapping[str, Tensor], step: Callable[[], object]) -> None:
    """Throws two forward and backward passes away, leaving the model, and the tensors `kept` besides, as they were.

    DDP orders its buckets anew after the first backward. A resumed process that did so in its first real step would sum
    that step in another order than a process that never stopped, and differ in the last bits from three ranks on. So
    every process, fresh or resumed, does it before the state is loaded.
    """
    live = {**model.state_dict(), **kept}
    before = {name: tensor.clone() for name, tensor in live.items()}
    for _ in range(WARM_UP_STEPS):
        step()
        model.zero_grad(set_to_none=True)
    with torch.no_grad():
        for name, tensor in live.items():
            tensor.copy_(before[name])
