"""Random changes of training images, a batch at a time; each image's is a function of (seed, step, index) alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from training.data.order import Indices, counters

SHIFT, WARP = 0, 1  # streams of random bits


def shifted(images: Tensor, seed: int, step: int, indices: Indices, most: int) -> Tensor:
    """Each image moved by up to `most` pixels along both axes, over black: a function of (seed, step, index)."""
    bits = counters(seed, step, indices, SHIFT)
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


def warped(images: Tensor, seed: int, step: int, indices: Indices, most: float) -> Tensor:
    """Each image under a linear map about its middle, over black: turned, stretched and slanted. Pixels become float32.

    The map is the identity with up to `most` added to or taken from each of its four entries.
    """
    bits = counters(seed, step, indices, WARP)
    entries = np.stack([(bits >> np.uint64(16 * entry)) & np.uint64(0xFFFF) for entry in range(4)], axis=-1)
    maps = torch.zeros(len(images), 2, 3)
    maps[:, :, :2] = torch.from_numpy(entries.astype(np.float32) / 0xFFFF * 2 - 1).view(-1, 2, 2) * most + torch.eye(2)
    grid = functional.affine_grid(maps.to(images.device), list(images.shape), align_corners=False)
    return functional.grid_sample(images.float(), grid, align_corners=False)
