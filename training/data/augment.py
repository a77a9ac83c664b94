"""Random changes of training images, a batch at a time; each image's is a function of (seed, step, index) alone."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from training.data.order import Indices, counters

SHIFT, WARP = 0, 1  # streams of random bits


def shifted(images: Tensor, seed: int, step: int, indices: Indices, most: int) -> Tensor:
    """Each image moved by up to `most` pixels along both axes, over black: a function of (seed, step, index)."""
    height, width = images.shape[2:]
    padded = functional.pad(images, (most, most, most, most))
    right, down = (offsets(bits, most).to(images.device)[:, None] for bits in axes(seed, step, indices))
    rows = down + torch.arange(height, device=images.device)
    columns = right + torch.arange(width, device=images.device)
    which = torch.arange(len(images), device=images.device)
    # indexing puts the channels last: [samples, height, width, channels]
    return padded[which[:, None, None], :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def axes(seed: int, step: int, indices: Indices) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Random bits for the move along the width and along the height."""
    bits = counters(seed, step, indices, SHIFT)
    return bits >> np.uint64(32), bits


def offsets(bits: npt.NDArray[np.uint64], most: int) -> Tensor:
    """A number 0 to 2 · most from the low 32 bits of each counter."""
    low = (bits & np.uint64(0xFFFFFFFF)).astype(np.int64)
    return torch.from_numpy(low % (2 * most + 1))


def warped(images: Tensor, seed: int, step: int, indices: Indices, most: float, shift: int) -> Tensor:
    """Each image under an affine map, over black: turned, stretched, slanted and moved. Pixels become float32.

    The map about the image's middle is the identity with up to `most` added to or taken from each of its four entries;
    then come up to `shift` whole pixels along both axes, the same as `shifted` takes.
    """
    height, width = images.shape[2:]
    bits = counters(seed, step, indices, WARP)
    entries = np.stack([(bits >> np.uint64(16 * entry)) & np.uint64(0xFFFF) for entry in range(4)], axis=-1)
    turns = torch.from_numpy(entries.astype(np.float32) / 0xFFFF * 2 - 1).view(-1, 2, 2) * most + torch.eye(2)
    moves = torch.stack([offsets(bits, shift) - shift for bits in axes(seed, step, indices)], dim=-1)
    moves = moves * torch.tensor([2 / width, 2 / height])  # the plane of a map is 2 wide and 2 high
    # one product for all images: [pixels, 2] by [2, images · 2], of which each image then takes its own two columns
    mapped = plane(height, width, images.device) @ turns.to(images.device).permute(2, 0, 1).reshape(2, -1)
    grid = (mapped.view(height, width, -1, 2) + moves.to(images.device)).permute(2, 0, 1, 3)
    return functional.grid_sample(images.float(), grid, align_corners=False)


@lru_cache(maxsize=4)
def plane(height: int, width: int, device: torch.device) -> Tensor:
    """Where each pixel lies before its image is mapped: [height · width, 2], x and y in -1 to 1."""
    still = torch.eye(2, 3, device=device)[None]
    return functional.affine_grid(still, [1, 1, height, width], align_corners=False).view(-1, 2)
