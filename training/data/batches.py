"""Cuts steps into the parts a rank runs through its model, ahead of time where threads are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from training.config import Job
from training.data.augment import Draw
from training.data.images import ImageSet
from training.data.order import Indices, drawn, global_batch, share
from training.data.text import TextSet

T = TypeVar("T")


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
        inputs, labels = self.source.training(Draw(self.seed, step), indices)
        if inputs.ndim == 4:  # images; tokens have no layout to choose
            inputs = inputs.to(memory_format=self.memory_format)  # `contiguous` leaves one channel as it is
        return Part(inputs=inputs, labels=labels, last=last, seed=drawn(self.seed, step, int(indices[0])))


@contextmanager
def ahead(batches: Batches, steps: range, workers: int) -> Iterator[Iterator[list[Part]]]:
    """The parts of these steps in order; `workers` threads prepare as many steps ahead. For a GPU they are made on a
    stream of their own."""
    device = batches.source.device
    if device.type != "cuda":
        with made(batches.at, steps, workers) as found:
            yield found
        return
    beside = Beside(batches, device)
    with made(beside.at, steps, workers) as found:
        yield map(beside.handed_over, found)


class Beside:
    """Batches that are made on a stream of their own: copies to the GPU, and changes of images there, run beside the
    step before."""

    def __init__(self, batches: Batches, device: torch.device) -> None:
        self._batches = batches
        self._stream = torch.cuda.Stream(device)
        self._stream.wait_stream(torch.cuda.current_stream(device))  # the data set may still be on its way

    def at(self, step: int) -> tuple[list[Part], torch.cuda.Event]:
        """A step's parts, and what happens when they are there."""
        there = torch.cuda.Event()
        with torch.cuda.stream(self._stream):
            parts = self._batches.at(step)
            there.record(self._stream)
        return parts, there

    def handed_over(self, made: tuple[list[Part], torch.cuda.Event]) -> list[Part]:
        """The parts for the loop's own stream: the device waits for them, the host does not. Their memory is not given
        away before that stream is done with it."""
        parts, there = made
        stream = torch.cuda.current_stream()
        stream.wait_event(there)
        for part in parts:
            part.inputs.record_stream(stream)
            part.labels.record_stream(stream)
        return parts


@contextmanager
def made(make: Callable[[int], T], steps: range, workers: int) -> Iterator[Iterator[T]]:
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
