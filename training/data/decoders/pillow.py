"""JPEG and PNG files decoded by Pillow, in threads, at the size that is needed; and which part of a picture is used."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import Tensor

from training import strict
from training.data.images import DataError
from training.data.transforms.draw import CROP, Draw, Indices

FORMATS = ("JPEG", "PNG")  # whatever a file is called: Pillow has Ghostscript run what begins as PostScript does
MIDDLE = 224 / 256  # share of the shorter side that evaluation sees
LEAST_AREA, LEAST_RATIO = 0.08, 3 / 4  # of a random crop (Szegedy et al. 2015); the ratio goes up to 4/3
UNREADABLE = (OSError, SyntaxError, ValueError, Image.DecompressionBombError)  # what Pillow raises for broken files
Box = tuple[float, float, float, float]  # left, top, right, bottom
Crop = npt.NDArray[np.float64] | None  # four random numbers, or None for the middle of the picture
T = TypeVar("T")


@dataclass
class Passed:
    """Files that could not be read: named once, counted, and an error from a limit on."""

    limit: int
    paths: set[Path] = field(default_factory=set)

    def note(self, path: Path, why: Exception) -> None:
        if path in self.paths:
            return
        self.paths.add(path)
        failure = f"{path} cannot be read ({str(why).splitlines()[0]})"
        if len(self.paths) > self.limit:
            count = f"{len(self.paths)} unreadable images, data.unreadable allows {self.limit}"
            raise DataError(f"{failure}: {count}; repair or remove it, or set data.unreadable higher")
        print(f"{failure}: skipped, {len(self.paths)} of at most {self.limit}", file=sys.stderr, flush=True)


@dataclass(frozen=True, kw_only=True)
class Files:
    """Image files and their labels; a training image is a random part of the picture, a held-out one its middle."""

    paths: list[Path]
    labels: npt.NDArray[np.int64]
    side: int
    passed: Passed
    pool: ThreadPoolExecutor

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def shape(self) -> tuple[int, int, int]:
        return 3, self.side, self.side

    def only(self, places: Indices) -> Files:
        return replace(self, paths=[self.paths[place] for place in places], labels=self.labels[places])

    def to(self, device: torch.device) -> Files:
        return self

    def at(self, indices: Indices, draw: Draw | None) -> tuple[Tensor, Tensor]:
        crops: list[Crop] = [None] * len(indices)
        if draw is not None:
            crops = [*crops_of(draw.bits(CROP, indices))]
        images, places = self.read(indices.tolist(), crops)
        return images.permute(0, 3, 1, 2), torch.from_numpy(self.labels[places])

    def read(self, places: list[int], crops: list[Crop]) -> tuple[Tensor, list[int]]:
        """The pixels of these files [files, side, side, 3]; and which files they are of in the end."""

        def one(place: int, crop: Crop) -> tuple[npt.NDArray[np.uint8], int]:
            return self.readable(place, partial(pixels, side=self.side, crop=crop))

        read = [*self.pool.map(one, places, crops)]
        return torch.from_numpy(np.stack([pixels for pixels, _ in read])), [place for _, place in read]

    def readable(self, place: int, read: Callable[[Path], T]) -> tuple[T, int]:
        """What is read of a file, or of the next one that can be read; and which that was."""
        for path_at in range(place, place + len(self)):
            path = self.paths[path_at % len(self)]
            try:
                return read(path), path_at % len(self)
            except UNREADABLE as error:
                self.passed.note(path, error)
        raise DataError(f"no image under {self.paths[0].parents[1]} can be read")


def crops_of(bits: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """Four numbers an image, 0 to 1: a crop's area, its ratio and its place along both axes."""
    return np.stack([(bits >> np.uint64(16 * n)) & np.uint64(0xFFFF) for n in range(4)], axis=-1) / 0xFFFF


def pixels(path: Path, side: int, crop: Crop) -> npt.NDArray[np.uint8]:
    """A part of the picture as [side, side, 3]; a JPEG is decoded at no more than the resolution that needs."""
    with strict.regular(path, follow=True) as file, Image.open(file, formats=FORMATS) as image:
        width, height = image.size
        left, top, right, bottom = seen(width, height, crop)
        shrink = side / max(1.0, min(right - left, bottom - top))
        image.draft("RGB", (int(width * shrink), int(height * shrink)))
        across, down = image.size[0] / width, image.size[1] / height
        box = (left * across, top * down, right * across, bottom * down)
        return np.asarray(image.convert("RGB").resize((side, side), Image.Resampling.BILINEAR, box=box))


def seen(width: int, height: int, crop: Crop) -> Box:
    """The part of a picture that the model sees."""
    return middle(width, height) if crop is None else part(width, height, crop)


def middle(width: int, height: int) -> Box:
    side = MIDDLE * min(width, height)
    left, top = (width - side) / 2, (height - side) / 2
    return left, top, left + side, top + side


def part(width: int, height: int, crop: npt.NDArray[np.float64]) -> Box:
    """A random part of the picture: of 8 % of its area or more, up to a third wider than high or the reverse."""
    area, ratio, across, down = crop.tolist()
    area = width * height * (LEAST_AREA + (1 - LEAST_AREA) * area)
    ratio = LEAST_RATIO ** (1 - 2 * ratio)
    wide, high = min(width, (area * ratio) ** 0.5), min(height, (area / ratio) ** 0.5)
    left, top = across * (width - wide), down * (height - high)
    return left, top, left + wide, top + high
