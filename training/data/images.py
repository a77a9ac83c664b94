"""Image sets: uint8 tensors that are gathered, augmented and normalized a batch at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from training.config.data import Augment, Content
from training.data.sampler import permutation
from training.data.transforms.augment import augmented
from training.data.transforms.draw import Draw, Indices


class DataError(Exception):
    """The data cannot be read; one line with the remedy."""


class ImageSource(Protocol):
    """Images by index."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height, width."""
        ...

    def __len__(self) -> int: ...

    def at(self, indices: Indices, draw: Draw | None) -> tuple[Tensor, Tensor]:
        """Images uint8 [samples, channels, height, width] and labels int64 [samples].

        draw: the random numbers of a training batch, for a source that crops as it reads.
        """
        ...

    def only(self, places: Indices) -> ImageSource:
        """Those of these numbers, in their order."""
        ...

    def to(self, device: torch.device) -> ImageSource: ...


@dataclass(frozen=True, kw_only=True)
class Images:
    """Images uint8 [samples, channels, height, width] and labels int64 [samples], both on one device."""

    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def shape(self) -> tuple[int, int, int]:
        channels, height, width = self.images.shape[1:]
        return channels, height, width

    def at(self, indices: Indices, draw: Draw | None) -> tuple[Tensor, Tensor]:
        places = torch.tensor(indices).to(self.labels.device, non_blocking=True)
        return self.images.index_select(0, places), self.labels.index_select(0, places)  # indexing bytes is slow

    def only(self, places: Indices) -> Images:
        return Images(images=self.images[places], labels=self.labels[places])

    def to(self, device: torch.device) -> Images:
        """On the device, where a quarter of its free memory holds them; where they are otherwise."""
        if device.type != "cuda" or self.images.nbytes > torch.cuda.mem_get_info(device)[0] // 4:
            return self
        return Images(images=self.images.to(device), labels=self.labels.to(device))


@dataclass(frozen=True, kw_only=True)
class ImageSet:
    """A training set and the held-out images; mean and std are those of the pixels in 0 to 255, over all channels or a
    number each."""

    train: ImageSource
    held_out: ImageSource
    classes: int
    mean: float | tuple[float, ...]
    std: float | tuple[float, ...]
    augment: Augment = field(default_factory=Augment)
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def content(self) -> Content:
        return "images"

    @property
    def channels(self) -> int:
        return self.train.shape[0]

    @property
    def image_size(self) -> int:
        return self.train.shape[1]

    @property
    def sample_values(self) -> int:
        """How many numbers an image is."""
        return math.prod(self.train.shape)

    def to(self, device: torch.device) -> ImageSet:
        return replace(self, train=self.train.to(device), held_out=self.held_out.to(device), device=device)

    def training(self, draw: Draw, indices: Indices) -> tuple[Tensor, Tensor]:
        """A training batch: inputs and labels, or shares of classes [samples, classes] where images are mixed."""

        def read(which: Indices) -> tuple[Tensor, Tensor]:
            return self._moved(self.train.at(which, draw))

        images, targets = augmented(read, self.augment, draw, indices, len(self.train), self.classes)
        return self.normalised(images), targets

    def evaluation(self, indices: Indices) -> tuple[Tensor, Tensor]:
        """Held-out images and their labels."""
        images, labels = self._moved(self.held_out.at(indices, None))
        return self.normalised(images), labels

    def _moved(self, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """To the device; from page-locked memory, so that the copy need not be waited for."""
        if self.device.type != "cuda":
            return batch
        images, labels = (t if t.is_cuda else t.pin_memory().to(self.device, non_blocking=True) for t in batch)
        return images, labels

    def normalised(self, images: Tensor) -> Tensor:
        """Pixels of 0 to 255 → float32 of mean 0 and deviation 1, same shape."""
        if isinstance(self.mean, float) and isinstance(self.std, float):
            return torch.sub(images.float(), self.mean).mul_(1.0 / self.std)
        # a number for every pixel of a row, in the images' layout: along an innermost axis of three channels alone, as
        # decoded files have it, torch is slow
        row = torch.empty_like(images[:1, :, :1], dtype=torch.float32)
        mean, std = (row.clone().copy_(row.new_tensor(v).view(-1, 1, 1)) for v in (self.mean, self.std))
        return torch.sub(images.float(), mean).div_(std)


def fold(data: ImageSet, number: int, folds: int) -> ImageSet:
    """A set judged by one part in `folds` of the training images, drawn at random, and trained on the others."""
    judged = permutation(folds, 0, len(data.train)) % folds == number
    train, held_out = (data.train.only(np.flatnonzero(which)) for which in (~judged, judged))
    return replace(data, train=train, held_out=held_out)
