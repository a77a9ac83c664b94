"""Image files decoded by NVIDIA DALI: on the GPU that trains, or on the CPU.

Files, order, labels and the random part of each picture are those of Pillow (see pillow.py), drawn here and not by
DALI, so nothing of its own has to be saved. The pixels differ a little: DALI cuts whole pixels out of the full picture,
Pillow cuts between pixels, and out of a JPEG that it decodes at a fraction of its size where that is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import Tensor

from training.data.decoders.pillow import UNREADABLE, Crop, Files, seen
from training.data.images import DataError


class Cut(NamedTuple):
    """An image file's bytes, and the part of its picture to decode: first row and column, height and width."""

    file: npt.NDArray[np.uint8]
    start: npt.NDArray[np.int32]
    shape: npt.NDArray[np.int32]


def installed() -> bool:
    return find_spec("nvidia") is not None and find_spec("nvidia.dali") is not None


def require() -> None:
    """Raises DataError where the library is missing."""
    if not installed():
        raise DataError('data.decoder = "dali" needs NVIDIA DALI: run `make dali`, or set data.decoder = "pillow"')


@dataclass(frozen=True, kw_only=True)
class DaliFiles(Files):
    """Image files that are decoded and resized a batch at a time, on the device of the batch."""

    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    def to(self, device: torch.device) -> DaliFiles:
        return replace(self, device=device)

    def read(self, places: list[int], crops: list[Crop]) -> tuple[Tensor, list[int]]:
        try:
            cuts = [*self.pool.map(cut, [self.paths[place] for place in places], crops)]
            return decoded(cuts, self.side, self.device), places
        except UNREADABLE:  # DALI does not name the file: decode one at a time
            read = [
                self.readable(place, partial(self.alone, crop=crop)) for place, crop in zip(places, crops, strict=True)
            ]
            return torch.stack([pixels for pixels, _ in read]), [place for _, place in read]

    def alone(self, path: Path, crop: Crop) -> Tensor:
        return decoded([cut(path, crop)], self.side, self.device)[0]


def cut(path: Path, crop: Crop) -> Cut:
    """The part of a file to decode; its size is read from its header."""
    content = path.read_bytes()
    with Image.open(BytesIO(content)) as image:
        width, height = image.size
    left, top, right, bottom = (round(edge) for edge in seen(width, height, crop))
    left, top = min(left, width - 1), min(top, height - 1)
    shape = max(1, bottom - top), max(1, right - left)
    return Cut(np.frombuffer(content, np.uint8), np.array([top, left], np.int32), np.array(shape, np.int32))


def decoded(cuts: Sequence[Cut], side: int, device: torch.device) -> Tensor:
    """The pixels [files, side, side, 3]; raises OSError where one of the files cannot be decoded."""
    import nvidia.dali.experimental.dynamic as dali  # pyright: ignore[reportMissingImports]

    on = "cpu"
    if device.type == "cuda":
        on = f"gpu:{torch.cuda.current_device() if device.index is None else device.index}"
        dali.set_current_stream(torch.cuda.current_stream(device))  # of this thread: batches are made beside the step
    files, start, shape = (dali.as_batch([*column]) for column in zip(*cuts, strict=True))
    part = {"start": start, "shape": shape, "axes": [0, 1]}
    try:
        pictures = dali.decoders.image_slice(files, **part, adjust_orientation=False, device=on)
        return dali.resize(pictures, size=[side, side]).torch()
    except RuntimeError as error:
        raise OSError(f"DALI: {error}") from error
