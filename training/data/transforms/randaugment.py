"""RandAugment (Cubuk et al. 2019), a subset: each image gets so many operations, each drawn from the list below."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from training.data.transforms.affine import mapped
from training.data.transforms.colour import grey, mean_grey
from training.data.transforms.draw import RANDAUGMENT, Draw, Indices

# at magnitude 1, as in the paper: degrees of a turn, slant, share of the image's side, factor around 1
TURN, SLANT, MOVE, FACTOR = 30.0, 0.3, 0.45, 0.9
Operation = Callable[[Tensor, Tensor], Tensor]


def operated(images: Tensor, draw: Draw, indices: Indices, count: int, magnitude: float) -> Tensor:
    """`count` operations an image, one after the other. Pixels become float32, 0 to 255."""
    images = images.float()
    for stream in range(count):
        bits = draw.bits(RANDAUGMENT + stream, indices)
        chosen = bits % np.uint64(len(OPERATIONS))
        signed = np.where(bits >> np.uint64(63) == 1, magnitude, -magnitude).astype(np.float32)
        for number, operation in enumerate(OPERATIONS):
            rows = torch.from_numpy(np.flatnonzero(chosen == number)).to(images.device)
            if len(rows):
                strength = torch.from_numpy(signed[chosen == number]).to(images.device)
                images = images.index_copy(0, rows, operation(images[rows], strength).clamp(0, 255))
    return images


def identity(images: Tensor, strength: Tensor) -> Tensor:
    return images


def rotate(images: Tensor, strength: Tensor) -> Tensor:
    angle = strength * math.radians(TURN)
    matrices = torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()], dim=-1).view(-1, 2, 2)
    return mapped(images, matrices, torch.zeros_like(matrices[:, 0]))


def shear(axis: int) -> Operation:
    """Slants along the width (0) or the height (1)."""

    def operation(images: Tensor, strength: Tensor) -> Tensor:
        matrices = torch.eye(2, device=images.device).repeat(len(images), 1, 1)
        matrices[:, axis, 1 - axis] = strength * SLANT
        return mapped(images, matrices, torch.zeros_like(matrices[:, 0]))

    return operation


def translate(axis: int) -> Operation:
    """Moves along the width (0) or the height (1)."""

    def operation(images: Tensor, strength: Tensor) -> Tensor:
        moves = torch.zeros(len(images), 2, device=images.device)
        moves[:, axis] = strength * MOVE * 2  # the plane is 2 wide and 2 high
        return mapped(images, torch.eye(2, device=images.device).repeat(len(images), 1, 1), moves)

    return operation


def brightness(images: Tensor, strength: Tensor) -> Tensor:
    return images * factor(strength)


def contrast(images: Tensor, strength: Tensor) -> Tensor:
    return torch.lerp(mean_grey(images), images, factor(strength))


def colour(images: Tensor, strength: Tensor) -> Tensor:
    return torch.lerp(grey(images).expand_as(images), images, factor(strength))


def posterize(images: Tensor, strength: Tensor) -> Tensor:
    """Fewer bits a pixel: 8 down to 4."""
    steps = 2 ** (4 * strength.abs()).round()[:, None, None, None]
    return (images / steps).floor() * steps


def solarize(images: Tensor, strength: Tensor) -> Tensor:
    """Bright pixels turned into dark ones."""
    return torch.where(images < 256 * (1 - strength.abs())[:, None, None, None], images, 255 - images)


def autocontrast(images: Tensor, strength: Tensor) -> Tensor:
    """Darkest pixel of each channel to 0, brightest to 255."""
    low, high = images.amin(dim=(2, 3), keepdim=True), images.amax(dim=(2, 3), keepdim=True)
    return torch.where(high > low, (images - low) * 255 / (high - low).clamp(min=1), images)


def factor(strength: Tensor) -> Tensor:
    return 1 + FACTOR * strength[:, None, None, None]


OPERATIONS: tuple[Operation, ...] = (
    identity, rotate, shear(0), shear(1), translate(0), translate(1),
    brightness, contrast, colour, posterize, solarize, autocontrast,
)  # fmt: skip
