"""Cuts steps into the parts a rank runs through its model, ahead of time where threads are given."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from training.config import Job
from training.data.augment import DROPOUT, Draw
from training.data.images import ImageSet
from training.data.order import Indices, global_batch, share
from training.data.text import TextSet


@dataclass(frozen=True, kw_only=True)
class Part:
    """What runs through the model at once: inputs, labels, and whether it is the last part of its share of the step.

    seed: of what the model itself draws at random (dropout).
    """

    inputs: Tensor
    labels: Tensor
    last: bool
    seed: int


class Batches:
    """The steps of a training set for a rank that holds the shares `mine` of `ways`; each a function of its number."""

    def __init__(
        self, source: ImageSet | TextSet, job: Job, *, ways: int, mine: range, memory_format: torch.memory_format
    ) -> None:
        self.source, self.seed, self.wanted = source, job.seed, job.data
        self.ways, self.mine, self.memory_format = ways, mine, memory_format

    def at(self, step: int) -> list[Part]:
        """This rank's parts of a step, counted from 0."""
        indices = global_batch(self.seed, step, len(self.source.train), self.wanted.global_batch)
        return [part for which in self.mine for part in self.parts(step, share(indices, which, self.ways))]

    def parts(self, step: int, indices: Indices) -> Iterator[Part]:
        """A share in pieces of at most `micro_batch` samples."""
        size = self.wanted.micro_batch or len(indices)
        for start in range(0, len(indices), size):
            yield self.part(step, indices[start : start + size], last=start + size >= len(indices))

    def part(self, step: int, indices: Indices, *, last: bool) -> Part:
        draw = Draw(self.seed, step)
        inputs, labels = self.source.training(draw, indices)
        if inputs.ndim == 4:  # images; tokens have no layout to choose
            inputs = inputs.contiguous(memory_format=self.memory_format)
        return Part(
            inputs=inputs, labels=labels, last=last, seed=int(draw.bits(DROPOUT, indices[:1])[0] >> np.uint64(1))
        )


@contextmanager
def ahead(batches: Batches, steps: range, workers: int) -> Iterator[Iterator[list[Part]]]:
    """The parts of these steps in order; `workers` threads prepare as many steps ahead."""
    if workers == 0:
        yield map(batches.at, steps)
        return
    with ThreadPoolExecutor(workers, thread_name_prefix="batches") as pool:
        yield prepared(pool, batches, steps, workers)
        pool.shutdown(cancel_futures=True)


def prepared(pool: ThreadPoolExecutor, batches: Batches, steps: range, depth: int) -> Iterator[list[Part]]:
    waiting: list[Future[list[Part]]] = [pool.submit(batches.at, step) for step in steps[:depth]]
    for step in steps:
        if step + depth in steps:
            waiting.append(pool.submit(batches.at, step + depth))
        yield waiting.pop(0).result()
