"""Random brightness, contrast and saturation of images, and the grey values that they are relative to."""

from __future__ import annotations

import torch
from torch import Tensor

from training.config.data import Augment
from training.data.transforms.draw import BRIGHTNESS, CONTRAST, SATURATION, Draw, Indices


def coloured(images: Tensor, draw: Draw, indices: Indices, config: Augment) -> Tensor:
    """Brighter or darker, more or less contrast and colour. Pixels become float32, 0 to 255."""
    images = images.float()
    if config.brightness:
        images = images * factors(draw, BRIGHTNESS, indices, config.brightness, images)
    if config.contrast:
        images = torch.lerp(mean_grey(images), images, factors(draw, CONTRAST, indices, config.contrast, images))
    if config.saturation:
        pale = grey(images).expand_as(images)
        images = torch.lerp(pale, images, factors(draw, SATURATION, indices, config.saturation, images))
    return images.clamp_(0, 255)


def factors(draw: Draw, stream: int, indices: Indices, most: float, like: Tensor) -> Tensor:
    """A factor an image, 1 - most to 1 + most: [images, 1, 1, 1]."""
    values = 1 + most * (2 * draw.uniform(stream, indices) - 1)
    return torch.from_numpy(values).to(like.device)[:, None, None, None]


def grey(images: Tensor) -> Tensor:
    """Luma of red, green and blue (ITU-R BT.601), or the mean of other channels: [images, 1, height, width]."""
    if images.shape[1] != 3:
        return images.mean(dim=1, keepdim=True)
    weights = torch.tensor([0.299, 0.587, 0.114], device=images.device).view(3, 1, 1)
    return (images * weights).sum(dim=1, keepdim=True)


def mean_grey(images: Tensor) -> Tensor:
    """Of each image: [images, 1, 1, 1]. Row by row: the sum over one large image torch would cut among its threads, and
    its last bits would hang on how many those are."""
    return grey(images).mean(dim=3, keepdim=True).mean(dim=2, keepdim=True)
