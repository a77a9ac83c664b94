"""Image files in class folders, as ImageNet is laid out; a decoder reads them as they are needed."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from training.config.data import ImageFolder
from training.data.decoders import dali, pillow
from training.data.images import DataError, ImageSet

SUFFIXES = frozenset({".jpg", ".jpeg", ".png"})
MEAN, STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)  # of ImageNet's pixels, as torchvision's weights expect


def load(config: ImageFolder, seed: int) -> ImageSet:
    """`path`/train and `path`/val; raises DataError for a folder that is missing, empty or of other classes, and for a
    decoder that is not installed."""
    decoded = pillow.Files
    if config.decoder == "dali":
        dali.require()
        decoded = dali.DaliFiles
    passed, pool = pillow.Passed(config.unreadable), ThreadPoolExecutor(thread_name_prefix="decode")
    classes = class_names(config.path / "train")
    others = class_names(config.path / "val")
    if classes != others:
        differing = ", ".join(sorted({*classes} ^ {*others})[:3])
        raise DataError(f"{config.path}: train and val have different class folders ({differing}); make them the same")

    def part(name: str) -> pillow.Files:
        paths = [[*images_in(config.path / name / kind)] for kind in classes]
        labels = np.repeat(np.arange(len(classes)), [len(these) for these in paths])
        flat = [path for these in paths for path in these]
        return decoded(paths=flat, labels=labels, side=config.image_size, passed=passed, pool=pool)

    return ImageSet(train=part("train"), held_out=part("val"), classes=len(classes), mean=MEAN, std=STD)


def class_names(folder: Path) -> list[str]:
    if not folder.is_dir():
        raise DataError(f"{folder} is missing; data.path must hold train/CLASS/*.jpg and val/CLASS/*.jpg")
    names = sorted(path.name for path in folder.iterdir() if path.is_dir())
    if len(names) < 2:
        raise DataError(f"{folder} has {len(names)} class folders; there must be 2 or more, one for each class")
    return names


def images_in(folder: Path) -> Iterator[Path]:
    """Its image files by name; raises DataError where there is none."""
    paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)
    if not paths:
        raise DataError(f"{folder} is empty: it has no {', '.join(sorted(SUFFIXES))} file; fill it or remove it")
    yield from paths
