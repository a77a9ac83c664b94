"""Random changes of training images, a batch at a time; each image's is a function of (seed, step, index) alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch
from numpy.lib.stride_tricks import sliding_window_view
from torch import Tensor
from torch.nn import functional

from training.config.data import Augment
from training.data.sampler import Indices, counters

# streams of random bits: each change draws from its own
SHIFT, WARP, FLIP, BRIGHTNESS, CONTRAST, SATURATION, MIX, SHARE, PLACE, CROP, RANDAUGMENT = range(11)
Read = Callable[[Indices], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Draw:
    """Where the random numbers of training samples come from: those of a step, or of `count` steps from `step` on, as
    many of each."""

    seed: int
    step: int
    count: int = 1

    def bits(self, stream: int, indices: Indices) -> npt.NDArray[np.uint64]:
        """64 random bits a sample."""
        return counters(self.seed, range(self.step, self.step + self.count), indices, stream)

    def uniform(self, stream: int, indices: Indices) -> npt.NDArray[np.float32]:
        """A number a sample, from 0 up to but not 1."""
        return (self.bits(stream, indices) >> np.uint64(40)).astype(np.float32) / np.float32(2**24)


def augmented(
    read: Read, wanted: Augment, draw: Draw, indices: Indices, samples: int, classes: int
) -> tuple[Tensor, Tensor]:
    """The images of these numbers, changed as asked for, uint8 or float32; and their labels.

    Mixed images have shares of classes [images, classes] for labels. Their partners are drawn from all `samples`, so
    that no image depends on which others are in its batch.
    """
    images, labels = changed(read, wanted, draw, indices)
    if not (wanted.mixup or wanted.cutmix):
        return images, labels
    from training.data.transforms.mixing import mixed

    partners = (draw.bits(MIX, indices) % np.uint64(samples)).astype(np.int64)
    others, other_labels = changed(read, wanted, draw, partners)
    one, other = (functional.one_hot(these, classes).float() for these in (labels, other_labels))
    return mixed(images, others, one, other, wanted, draw, indices)


def changed(read: Read, wanted: Augment, draw: Draw, indices: Indices) -> tuple[Tensor, Tensor]:
    """Images moved, mirrored and coloured, each on its own."""
    images, labels = read(indices)
    if wanted.warp:
        images = warped(images, draw, indices, wanted.warp, wanted.shift)
    elif wanted.shift:
        images = shifted(images, draw, indices, wanted.shift)
    if wanted.flip:
        images = flipped(images, draw, indices)
    if wanted.randaugment:
        from training.data.transforms.randaugment import operated

        images = operated(images, draw, indices, wanted.randaugment, wanted.magnitude)
    if wanted.brightness or wanted.contrast or wanted.saturation:
        images = coloured(images, draw, indices, wanted)
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


def coloured(images: Tensor, draw: Draw, indices: Indices, wanted: Augment) -> Tensor:
    """Brighter or darker, more or less contrast and colour. Pixels become float32, 0 to 255."""
    images = images.float()
    if wanted.brightness:
        images = images * factors(draw, BRIGHTNESS, indices, wanted.brightness, images)
    if wanted.contrast:
        images = torch.lerp(mean_grey(images), images, factors(draw, CONTRAST, indices, wanted.contrast, images))
    if wanted.saturation:
        pale = grey(images).expand_as(images)
        images = torch.lerp(pale, images, factors(draw, SATURATION, indices, wanted.saturation, images))
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
    turns = (entries.astype(np.float32) / 0xFFFF * 2 - 1) * most + np.eye(2, dtype=np.float32)
    pixel = np.array([2 / width, 2 / height], np.float32)  # the plane is 2 wide and 2 high
    moves = (offsets(draw, indices, shift) - shift).astype(np.float32) * pixel
    return mapped(images, torch.from_numpy(turns), torch.from_numpy(moves))


def mapped(images: Tensor, turns: Tensor, moves: Tensor) -> Tensor:
    """Each image seen through its own map of the plane -1 to 1: turns [images, 2, 2], then moves [images, 2]."""
    height, width = images.shape[2:]
    turns, moves = turns.to(images.device), moves.to(images.device)
    # all x of an image, then all its y: sampling from such a grid takes half of what it takes where they take turns
    still = plane(height, width, images.device).expand(len(images), -1, -1)
    places = torch.baddbmm(moves[:, :, None], turns, still).unflatten(2, (height, width))
    return functional.grid_sample(images.float(), places.permute(0, 2, 3, 1), align_corners=False)


@lru_cache(maxsize=4)
def plane(height: int, width: int, device: torch.device) -> Tensor:
    """Where each pixel lies before its image is mapped: [2, height · width], x and y in -1 to 1."""
    still = torch.eye(2, 3, device=device)[None]
    return functional.affine_grid(still, [1, 1, height, width], align_corners=False).view(-1, 2).T.contiguous()
