"""Augmentation of training images, a batch at a time; each image changes as a function of (seed, step, index) alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from numpy.lib.stride_tricks import sliding_window_view
from torch import Tensor
from torch.nn import functional

from training.config.data import Augment
from training.data.transforms.affine import mapped
from training.data.transforms.colour import coloured
from training.data.transforms.draw import FLIP, MIX, SHIFT, WARP, Draw, Indices
from training.data.transforms.mixing import mixed
from training.data.transforms.randaugment import operated

Read = Callable[[Indices], tuple[Tensor, Tensor]]


def augmented(
    read: Read, config: Augment, draw: Draw, indices: Indices, samples: int, classes: int
) -> tuple[Tensor, Tensor]:
    """The images of these numbers, changed as asked for, uint8 or float32; and their labels.

    Mixed images have shares of classes [images, classes] for labels. Their partners are drawn from all `samples`, so
    that no image depends on which others are in its batch.
    """
    images, labels = changed(read, config, draw, indices)
    if not (config.mixup or config.cutmix):
        return images, labels
    partners = (draw.bits(MIX, indices) % np.uint64(samples)).astype(np.int64)
    others, other_labels = changed(read, config, draw, partners)
    one, other = (functional.one_hot(these, classes).float() for these in (labels, other_labels))
    return mixed(images, others, one, other, config, draw, indices)


def changed(read: Read, config: Augment, draw: Draw, indices: Indices) -> tuple[Tensor, Tensor]:
    """Images moved, mirrored and coloured, each on its own."""
    images, labels = read(indices)
    if config.warp:
        images = warped(images, draw, indices, config.warp, config.shift)
    elif config.shift:
        images = shifted(images, draw, indices, config.shift)
    if config.flip:
        images = flipped(images, draw, indices)
    if config.randaugment:
        images = operated(images, draw, indices, config.randaugment, config.magnitude)
    if config.brightness or config.contrast or config.saturation:
        images = coloured(images, draw, indices, config)
    return images, labels


def flipped(images: Tensor, draw: Draw, indices: Indices) -> Tensor:
    """Half of the images, left to right."""
    places = torch.from_numpy(np.flatnonzero(draw.bits(FLIP, indices) >> np.uint64(63))).to(images.device)
    mirrored, turned = images.clone(), images.index_select(0, places).flip(3)
    if images.device.type == "cpu":  # numpy copies whole images, torch byte by byte
        mirrored.numpy()[places.numpy()] = turned.numpy()
    else:
        mirrored[places] = turned
    return mirrored


def shifted(images: Tensor, draw: Draw, indices: Indices, most: int) -> Tensor:
    """Each image moved by up to `most` pixels along both axes, over black."""
    height, width = images.shape[2:]
    padded = functional.pad(images, (most, most, most, most))
    right, down = offsets(draw, indices, most).T
    if images.device.type == "cpu":  # numpy copies whole rows, torch byte by byte
        windows = sliding_window_view(padded.numpy(), (height, width), axis=(2, 3))
        return torch.from_numpy(windows[np.arange(len(images)), :, down, right])
    right, down = (torch.from_numpy(part).to(images.device) for part in (right, down))
    places = padded.unfold(2, height, 1).unfold(3, width, 1)  # a view: [images, channels, down, right, height, width]
    which = torch.arange(len(images), device=images.device)
    return places[which, :, down, right]


def offsets(draw: Draw, indices: Indices, most: int) -> npt.NDArray[np.int64]:
    """How many pixels each image moves along its width and its height, plus `most`: [images, 2] of 0 to 2 · most."""
    halves = draw.bits(SHIFT, indices).astype("<u8").view("<u4").reshape(-1, 2)
    return (halves[:, ::-1] % (2 * most + 1)).astype(np.int64)


def warped(images: Tensor, draw: Draw, indices: Indices, most: float, shift: int) -> Tensor:
    """Each image under an affine map, over black: turned, stretched, slanted and moved. Pixels become float32.

    The map about the image's middle is the identity with up to `most` added to or taken from each of its four entries;
    then come up to `shift` whole pixels along both axes, the same as `shifted` takes.
    """
    height, width = images.shape[2:]
    entries = draw.bits(WARP, indices).astype("<u8").view("<u2").reshape(-1, 2, 2)
    matrices = (entries.astype(np.float32) / 0xFFFF * 2 - 1) * most + np.eye(2, dtype=np.float32)
    pixel = np.array([2 / width, 2 / height], np.float32)  # the plane is 2 wide and 2 high
    moves = (offsets(draw, indices, shift) - shift).astype(np.float32) * pixel
    return mapped(images, torch.from_numpy(matrices), torch.from_numpy(moves))
