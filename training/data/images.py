"""Image sets as uint8 tensors in memory: gathered, moved and normalised a batch at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from training.data.order import Indices, counters


class DataError(Exception):
    """The data cannot be read; one line with the remedy."""


@dataclass(frozen=True, kw_only=True)
class Images:
    """Images uint8 [samples, channels, height, width] and labels int64 [samples], both on one device."""

    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: torch.device) -> Images:
        return Images(images=self.images.to(device), labels=self.labels.to(device))


@dataclass(frozen=True, kw_only=True)
class ImageSet:
    """A training set and the held-out images; mean and std are those of the pixels in 0 to 255."""

    train: Images
    held_out: Images
    classes: int
    mean: float
    std: float

    @property
    def channels(self) -> int:
        return self.train.images.shape[1]

    @property
    def image_size(self) -> int:
        return self.train.images.shape[2]

    def to(self, device: torch.device) -> ImageSet:
        train, held_out = self.train.to(device), self.held_out.to(device)
        return ImageSet(train=train, held_out=held_out, classes=self.classes, mean=self.mean, std=self.std)

    def normalised(self, images: Tensor) -> Tensor:
        """uint8 → float32 of mean 0 and deviation 1, same shape."""
        return images.float().sub_(self.mean).mul_(1.0 / self.std)


def shifted(images: Tensor, seed: int, step: int, indices: Indices, most: int) -> Tensor:
    """Each image moved by up to `most` pixels along both axes, over black: a function of (seed, step, index)."""
    bits = counters(seed, step, indices)
    height, width = images.shape[2:]
    padded = functional.pad(images, (most, most, most, most))
    rows = offsets(bits, most, images.device)[:, None] + torch.arange(height, device=images.device)
    columns = offsets(bits >> np.uint64(32), most, images.device)[:, None] + torch.arange(width, device=images.device)
    which = torch.arange(len(images), device=images.device)
    # indexing puts the channels last: [samples, height, width, channels]
    return padded[which[:, None, None], :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def offsets(bits: npt.NDArray[np.uint64], most: int, device: torch.device) -> Tensor:
    """A number 0 to 2 · most from the low 32 bits of each counter."""
    low = (bits & np.uint64(0xFFFFFFFF)).astype(np.int64)
    return torch.from_numpy(low % (2 * most + 1)).to(device)
