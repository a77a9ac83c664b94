"""Mixup (Zhang et al. 2018) and CutMix (Yun et al. 2019): two images become one that is partly of each one's class."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from training.config.data import Augment
from training.data.transforms.draw import MIX, PLACE, SHARE, Draw, Indices

STEPS = 4096  # of a Beta distribution's table


def mixed(
    images: Tensor,
    others: Tensor,
    targets: Tensor,
    other_targets: Tensor,
    config: Augment,
    draw: Draw,
    indices: Indices,
) -> tuple[Tensor, Tensor]:
    """Each image with its partner, and the classes in the same shares; float32 [images, classes]."""
    cut = np.full(len(indices), bool(config.cutmix))
    if config.mixup and config.cutmix:
        cut = draw.bits(MIX, indices) >> np.uint64(63) == 1
    uniform = draw.uniform(SHARE, indices)
    shares = np.where(cut, beta(uniform, config.cutmix or 1.0), beta(uniform, config.mixup or 1.0)).astype(np.float32)
    inside = boxes(shares, draw, indices, images.shape[2], images.shape[3])
    shares = np.where(cut, 1 - inside.mean(axis=(1, 2), dtype=np.float32), shares)
    weights = np.where(cut[:, None, None], 1 - inside, shares[:, None, None]).astype(np.float32)
    share = torch.from_numpy(weights).to(images.device)[:, None]
    part = torch.from_numpy(shares).to(images.device)[:, None]
    return torch.lerp(others.float(), images.float(), share), torch.lerp(other_targets, targets, part)


def boxes(
    shares: npt.NDArray[np.float32], draw: Draw, indices: Indices, height: int, width: int
) -> npt.NDArray[np.bool_]:
    """True in a box of area 1 - shares about a random middle, cut off at the border: [images, height, width]."""
    bits = draw.bits(PLACE, indices)
    sides = np.sqrt(1 - shares)

    def between(middle: npt.NDArray[np.uint64], length: int) -> npt.NDArray[np.bool_]:
        half = (sides * length / 2)[:, None]
        return np.abs(np.arange(length) + 0.5 - middle.astype(np.float32)[:, None]) < half

    rows = between((bits & np.uint64(0xFFFFFFFF)) % np.uint64(height), height)
    columns = between((bits >> np.uint64(32)) % np.uint64(width), width)
    return rows[:, :, None] & columns[:, None, :]


def beta(uniform: npt.NDArray[np.float32], alpha: float) -> npt.NDArray[np.floating]:
    """Numbers of Beta(α, α) from uniform ones, by its tabulated quantiles: one draw a number, unlike rejection."""
    lower = np.interp(2 * np.minimum(uniform, 1 - uniform), *lower_half(alpha))
    return np.where(uniform < 0.5, lower, 1 - lower)


@lru_cache(maxsize=4)
def lower_half(alpha: float) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The distribution function below one half and where it takes those values. Along s, with x = s^(1/α) / 2, the
    density has no pole at 0."""
    places = 0.5 * np.linspace(0, 1, STEPS) ** (1 / alpha)
    mass = np.cumsum((1 - places) ** (alpha - 1))
    return (mass - mass[0]) / (mass[-1] - mass[0]), places
