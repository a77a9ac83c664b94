"""Splits steps into the micro-batches of a rank, prepared ahead by threads where the job has workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from training.config.data import Batching
from training.data.images import ImageSet
from training.data.sampler import global_batch, share
from training.data.text import Documents, TextSet
from training.data.transforms.draw import STEPS_AT_ONCE, Draw, Indices, drawn

T = TypeVar("T")
VALUES_AT_ONCE = 2**18  # of inputs: what fits into a core's own cache


@dataclass(frozen=True, kw_only=True)
class MicroBatch:
    """What runs through the model at once: inputs, labels, and whether it is the last part of its share of the step.

    seed: of what the model itself draws at random (dropout).
    """

    inputs: Tensor
    labels: Tensor
    last: bool
    seed: int


class Cut(NamedTuple):
    """The samples of a part; last: of its share of the step."""

    step: int
    indices: Indices
    last: bool


class Batches:
    """The steps of a training set for a rank that holds the shares `mine` of `ways`; each a function of its number."""

    def __init__(
        self,
        source: ImageSet | TextSet,
        config: Batching,
        seed: int,
        *,
        dp_size: int,
        dp_shards: range,
        memory_format: torch.memory_format,
    ) -> None:
        self.source, self.seed, self.config = source, seed, config
        self.dp_size, self.dp_shards, self.memory_format = dp_size, dp_shards, memory_format

    def at(self, step: int) -> list[MicroBatch]:
        """This rank's parts of a step, counted from 0."""
        return [self.part(cut, *self.samples(range(step, step + 1), cut.indices)) for cut in self.cuts(step)]

    def iterate(self, steps: range) -> Iterator[list[MicroBatch]]:
        """The parts of one step after another. Small steps are made several at a time: most of their time goes into the
        beginning of each operation. Not so documents, whose longest one decides how wide its batch is."""
        values = self.source.sample_values * len(self.dp_shards) * self.config.global_batch // self.dp_size
        count = min(STEPS_AT_ONCE, VALUES_AT_ONCE // max(1, values))
        if count <= 1 or isinstance(self.source.train, Documents):
            yield from map(self.at, steps)
            return
        for begin in range(0, len(steps), count):
            yield from self.several(steps[begin : begin + count])

    def several(self, steps: range) -> Iterator[list[MicroBatch]]:
        """What `at` gives for each of these steps, their samples drawn and changed all at once."""
        cuts = [[*self.cuts(step)] for step in steps]
        indices = [cut.indices for step in cuts for cut in step]
        sizes = [len(piece) for piece in indices]
        inputs, labels = self.samples(steps, np.concatenate(indices))
        parts = zip(inputs.split(sizes), labels.split(sizes), strict=True)
        for step in cuts:
            yield [self.part(cut, *next(parts)) for cut in step]

    def cuts(self, step: int) -> Iterator[Cut]:
        """This rank's shares of a step in pieces of at most `micro_batch` samples."""
        indices = global_batch(self.seed, step, len(self.source.train), self.config.global_batch)
        for shard in (share(indices, which, self.dp_size) for which in self.dp_shards):
            size = self.config.micro_batch or len(shard)
            for start in range(0, len(shard), size):
                yield Cut(step, shard[start : start + size], start + size >= len(shard))

    def samples(self, steps: range, indices: Indices) -> tuple[Tensor, Tensor]:
        """Inputs and labels of these samples, as many of each step."""
        inputs, labels = self.source.training(Draw(self.seed, steps.start, len(steps)), indices)
        if inputs.ndim == 4:  # images; tokens have no layout to choose
            inputs = inputs.to(memory_format=self.memory_format)  # `contiguous` leaves one channel as it is
        return inputs, labels

    def part(self, cut: Cut, inputs: Tensor, labels: Tensor) -> MicroBatch:
        seed = drawn(self.seed, cut.step, int(cut.indices[0]))
        return MicroBatch(inputs=inputs, labels=labels, last=cut.last, seed=seed)


@contextmanager
def ahead(batches: Batches, steps: range, workers: int) -> Iterator[Iterator[list[MicroBatch]]]:
    """The parts of these steps in order; `workers` threads prepare as many steps ahead. For a GPU they are made on a
    stream of their own."""
    device = batches.source.device
    if device.type == "cuda":
        beside = Beside(batches, device)
        with prefetched(beside.at, steps, workers) as steps_parts:
            yield map(beside.handed_over, steps_parts)
    elif workers == 0:
        yield batches.iterate(steps)
    else:
        with prefetched(batches.at, steps, workers) as steps_parts:
            yield steps_parts


class Beside:
    """Batches prepared on a CUDA stream of their own: copies to the GPU, and changes of images there, run beside the
    step before."""

    def __init__(self, batches: Batches, device: torch.device) -> None:
        self._batches = batches
        self._stream = torch.cuda.Stream(device)
        self._stream.wait_stream(torch.cuda.current_stream(device))  # the data set may still be on its way

    def at(self, step: int) -> tuple[list[MicroBatch], torch.cuda.Event]:
        """A step's parts, and what happens when they are there."""
        there = torch.cuda.Event()
        with torch.cuda.stream(self._stream):
            parts = self._batches.at(step)
            there.record(self._stream)
        return parts, there

    def handed_over(self, prepared_step: tuple[list[MicroBatch], torch.cuda.Event]) -> list[MicroBatch]:
        """The parts for the loop's own stream: the device waits for them, the host does not. Their memory is not given
        away before that stream is done with it."""
        parts, there = prepared_step
        stream = torch.cuda.current_stream()
        stream.wait_event(there)
        for part in parts:
            part.inputs.record_stream(stream)
            part.labels.record_stream(stream)
        return parts


@contextmanager
def prefetched(make: Callable[[int], T], steps: range, workers: int) -> Iterator[Iterator[T]]:
    """What `make` gives for these steps, by so many threads ahead of time.

    Each computes alone: OpenMP would give it a team of threads of its own, and where teams have more threads than there
    are cores, those of the loop's own team go to sleep between any two operations.
    """
    if workers == 0:
        yield map(make, steps)
        return
    with ThreadPoolExecutor(workers, "batches", initializer=torch.set_num_threads, initargs=(1,)) as pool:
        yield prepared(pool, make, steps, workers)
        pool.shutdown(cancel_futures=True)


def prepared(pool: ThreadPoolExecutor, make: Callable[[int], T], steps: range, depth: int) -> Iterator[T]:
    waiting: list[Future[T]] = [pool.submit(make, step) for step in steps[:depth]]
    for step in steps:
        if step + depth in steps:
            waiting.append(pool.submit(make, step + depth))
        yield waiting.pop(0).result()
