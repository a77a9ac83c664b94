"""Images sampled through affine maps: rotated, stretched, sheared and moved."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor
from torch.nn import functional


def mapped(images: Tensor, matrices: Tensor, moves: Tensor) -> Tensor:
    """Each image sampled through its own map of the plane -1 to 1: matrices [images, 2, 2], then moves [images, 2]."""
    height, width = images.shape[2:]
    matrices, moves = matrices.to(images.device), moves.to(images.device)
    # all x of an image, then all its y: sampling from such a grid takes half the time of one where they alternate
    still = plane(height, width, images.device).expand(len(images), -1, -1)
    places = torch.baddbmm(moves[:, :, None], matrices, still).unflatten(2, (height, width))
    return functional.grid_sample(images.float(), places.permute(0, 2, 3, 1), align_corners=False)


@lru_cache(maxsize=4)
def plane(height: int, width: int, device: torch.device) -> Tensor:
    """Where each pixel lies before its image is mapped: [2, height · width], x and y in -1 to 1."""
    still = torch.eye(2, 3, device=device)[None]
    return functional.affine_grid(still, [1, 1, height, width], align_corners=False).view(-1, 2).T.contiguous()
