"""Synthetic images that can be learned: a coarse pattern for each class, under noise."""

from __future__ import annotations

import numpy as np
import torch

from training.config.data import Synthetic
from training.data.images import Images, ImageSet

COARSE = 4  # pixels a side of a pattern before it is enlarged
CONTRAST = 0.5  # of the pattern against the noise


def load(config: Synthetic, seed: int) -> ImageSet:
    """The set of that seed: `config.samples` to train on and `config.held_out` more."""
    random = np.random.Generator(np.random.Philox(key=[seed, 0]))
    size, count = config.image_size, config.samples + config.held_out
    patterns = random.integers(0, 256, (config.classes, config.channels, COARSE, COARSE), dtype=np.uint8)
    enlarge = np.arange(size) * COARSE // size
    labels = np.arange(count) % config.classes
    noise = random.integers(0, 256, (count, config.channels, size, size), dtype=np.uint8)
    images = (noise * np.float32(1 - CONTRAST)).astype(np.uint8)
    images += (patterns * CONTRAST).astype(np.uint8)[labels][:, :, enlarge][:, :, :, enlarge]
    train, held_out = slice(None, config.samples), slice(config.samples, None)
    return ImageSet(
        train=Images(images=torch.from_numpy(images[train]), labels=torch.from_numpy(labels[train])),
        held_out=Images(images=torch.from_numpy(images[held_out]), labels=torch.from_numpy(labels[held_out])),
        classes=config.classes,
        mean=float(images.mean()),
        std=float(images.std()),
    )
