"""Ranks and the ways to share a step among them."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from training.config import Job
from training.dist.agreement import Agreement
from training.dist.ddp import Ddp
from training.dist.parallel import Parallel
from training.dist.ranks import Ranks, connect
from training.dist.shards import Shards
from training.wanted import run

__all__ = ["Agreement", "Parallel", "Ranks", "connect", "parallel", "warm_up"]

WARM_UP_STEPS = 2


def parallel(job: Job, model: nn.Module, ranks: Ranks) -> Parallel:
    """The way the job asks for; raises JobError where these ranks cannot share its batch."""
    wanted, batch = job.parallel, job.data.global_batch
    shares, key = (batch, "data.global_batch")
    if isinstance(wanted, run.Ddp) and wanted.shards:
        shares, key = wanted.shards, "parallel.shards"
    if ranks.world > shares:
        raise job.refusal(key, f"{shares} cannot be shared by {ranks.world} ranks")
    if isinstance(wanted, run.Ddp) and wanted.shards:
        return Shards(model, ranks, wanted.shards, batch)
    return Ddp(model, ranks, batch) if ranks.world > 1 else Parallel(model, ranks, batch)


def warm_up(model: nn.Module, step: Callable[[], object]) -> None:
    """Throws two forward and backward passes away, leaving the model as it was.

    DDP orders its buckets anew after the first backward. A resumed process that did so in its first real step would sum
    that step in another order than a process that never stopped, and differ in the last bits from three ranks on. So
    every process, fresh or resumed, does it before the state is loaded.
    """
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for _ in range(WARM_UP_STEPS):
        step()
        model.zero_grad(set_to_none=True)
    model.load_state_dict(before)
