"""The parts of a run, each built from the job's tables that it needs."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from training import autotune, data, models
from training.checkpoint.manager import Checkpoints
from training.checkpoint.state import State
from training.compiled import compiled
from training.config.job import Job
from training.data.batches import Batches
from training.parallel import Parallel, Ranks, parallel


def data_of(job: Job) -> data.DataSet:
    """The data set that the job names, or the fold of it, with its augmentation."""
    return data.load(job.data, job.augment, job.seed)


def model_of(job: Job, samples: data.DataSet) -> nn.Module:
    """The model that the job names, for this data."""
    return models.build(job.model, samples, job.seed)


def mode_of(job: Job, ranks: Ranks, model: nn.Module, samples: data.DataSet) -> autotune.Mode:
    """What the job computes with: as it says, or by a trial."""
    return autotune.settled(
        job.precision,
        ranks,
        model,
        samples,
        channels_last=getattr(job.model, "channels_last", False),
        fp16=job.against_fp16() is None,
        batch=job.data.micro_batch or max(1, job.data.global_batch // ranks.world),
        seed=job.seed,
        file=job.out / "compute.json",
    )


def parallel_of(job: Job, model: nn.Module, ranks: Ranks, steps: int) -> Parallel:
    """How the ranks share a step of the model, compiled where the job asks for it. steps: of the whole run."""
    return parallel(
        job.parallel,
        compiled(model, ranks.device) if job.model.compile else model,
        ranks,
        job.data,
        seed=job.seed,
        steps=steps,
        clip_norm=job.optimizer.clip_norm,
        start_seconds=job.health.start_seconds,
    )


def batches_of(job: Job, samples: data.DataSet, way: Parallel, memory_format: torch.memory_format) -> Batches:
    """The batches of this rank."""
    return Batches(
        samples, job.data, job.seed, dp_size=way.dp_size, dp_shards=way.dp_shards, memory_format=memory_format
    )


def checkpoints_of(
    job: Job,
    samples: data.DataSet,
    ranks: Ranks,
    state: State,
    way: Parallel,
    *,
    durable: Callable[[int], None],
    note: Callable[[str], None],
) -> Checkpoints:
    """Where the state is saved and restored. durable, note: see `Checkpoints`."""
    recipe = data.recipe(job.recipe(), samples)
    return Checkpoints(job.checkpoint, job.health, recipe, ranks, state, way, out=job.out, durable=durable, note=note)
