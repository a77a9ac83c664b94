"""`bench augment`: our batched changes of images against Pillow's, one sample after the other.

Both in a process that keeps the memory it frees, as the step loop's does.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

from training.allocator import keep_freed_memory
from training.bench.figure import Figure, spread
from training.config.data import Augment
from training.data.images import Images, ImageSet
from training.data.transforms.draw import Draw

SAMPLES, SIDE, PAD, BATCH = 4096, 32, 4, 256
MEAN, STD = (125.3, 123.0, 113.9), (63.0, 62.1, 66.7)  # of CIFAR-10's pixels
GOAL = 5.0


def measure(rounds: int) -> Figure:
    """How many times as many images a second, one thread: a move of up to 4 pixels, a flip, normalised."""
    keep_freed_memory()
    pixels = np.random.default_rng(1).integers(0, 256, (SAMPLES, SIDE, SIDE, 3), dtype=np.uint8)
    ours, theirs = batched(pixels), one_by_one(pixels)
    times: dict[str, list[float]] = {"ours": [], "Pillow": []}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for number in range(rounds + 1):
            for name, work in (("ours", ours), ("Pillow", theirs)):
                start = time.perf_counter()
                work(number)
                if number:  # the first warms up
                    times[name].append(time.perf_counter() - start)
    finally:
        torch.set_num_threads(threads)
    return Figure(
        name="augment",
        what="batched changes of images against Pillow one by one, one thread",
        value=min(times["Pillow"]) / min(times["ours"]),
        goal=GOAL,
        rows={
            name: f"{SAMPLES / min(seconds):,.0f} img/s; {spread(seconds, SAMPLES // BATCH)}"
            for name, seconds in times.items()
        },
        settings={"images": f"{SAMPLES} of {SIDE} × {SIDE} × 3, batches of {BATCH}: move ≤ {PAD}, flip, normalise"},
    )


def batched(pixels: np.ndarray) -> Callable[[int], None]:
    images = Images(
        images=torch.from_numpy(pixels).permute(0, 3, 1, 2).contiguous(), labels=torch.zeros(SAMPLES, dtype=torch.int64)
    )
    augment = Augment(shift=PAD, flip=True)
    data = ImageSet(train=images, held_out=images, classes=2, mean=MEAN, std=STD, augment=augment)

    def work(number: int) -> None:
        order = np.random.default_rng(number).permutation(SAMPLES)
        for start in range(0, SAMPLES, BATCH):
            inputs, _ = data.training(Draw(1, number), order[start : start + BATCH])
            assert inputs.shape == (BATCH, 3, SIDE, SIDE)

    return work


def one_by_one(pixels: np.ndarray) -> Callable[[int], None]:
    mean, std = (np.array(v, dtype=np.float32) for v in (MEAN, STD))

    def sample(random: np.random.Generator, index: int) -> Tensor:
        image = ImageOps.expand(Image.fromarray(pixels[index]), PAD)
        x, y = random.integers(0, 2 * PAD + 1, 2)
        image = image.crop((x, y, x + SIDE, y + SIDE))
        if random.random() < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        return torch.from_numpy(((np.asarray(image, dtype=np.float32) - mean) / std).transpose(2, 0, 1))

    def work(number: int) -> None:
        random = np.random.default_rng(number)
        order = random.permutation(SAMPLES)
        for start in range(0, SAMPLES, BATCH):
            inputs = torch.stack([sample(random, index) for index in order[start : start + BATCH]])
            assert inputs.shape == (BATCH, 3, SIDE, SIDE)

    return work
