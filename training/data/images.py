"""Image sets as uint8 tensors in memory: gathered, moved and normalised a batch at a time."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


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
        """Pixels of 0 to 255 → float32 of mean 0 and deviation 1, same shape."""
        return torch.sub(images.float(), self.mean).mul_(1.0 / self.std)
