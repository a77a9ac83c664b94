"""CIFAR-10 from the binary version: records of one label byte and 3,072 pixel bytes, red, green, blue, row by row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from training import strict
from training.config.data import Cifar10
from training.data.images import DataError, Images, ImageSet

CLASSES, SIDE = 10, 32
RECORD_BYTES = 1 + 3 * SIDE * SIDE
TRAINING = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
HELD_OUT = "test_batch.bin"


def load(config: Cifar10, seed: int) -> ImageSet:
    """The five training files and the held-out one; raises DataError naming the file and what is wrong with it."""
    folder = config.path
    if not folder.is_dir():
        raise DataError(
            f"data.path {folder} is no folder; unpack cifar-10-binary.tar.gz and give its cifar-10-batches-bin"
        )
    parts = [records(folder / name) for name in TRAINING]
    images, labels = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    held_out = records(folder / HELD_OUT)
    return ImageSet(
        train=images_of(images, labels),
        held_out=images_of(*held_out),
        classes=CLASSES,
        mean=tuple(images.mean(axis=(0, 2, 3)).tolist()),
        std=tuple(images.std(axis=(0, 2, 3)).tolist()),
    )


def records(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Images uint8 [records, 3, 32, 32] and labels [records] of one file."""
    try:
        with strict.regular(path, follow=True) as file:
            data = np.fromfile(file, dtype=np.uint8)
    except strict.NotRegularFileError as error:
        raise DataError(f"{path}: {error}") from error
    except FileNotFoundError as error:
        raise DataError(f"{path} is missing; unpack cifar-10-binary.tar.gz again") from error
    whole, rest = divmod(len(data), RECORD_BYTES)
    if rest or not whole:
        raise DataError(f"{path} is cut short: {whole} records of {RECORD_BYTES} bytes and {rest} bytes; get it again")
    table = data.reshape(whole, RECORD_BYTES)
    labels = table[:, 0]
    if labels.max() >= CLASSES:
        record = int(np.argmax(labels >= CLASSES))
        mistake = f"record {record} has label {labels[record]}, and there are {CLASSES} classes"
        raise DataError(f"{path}: {mistake}; is it CIFAR-100, or the Python version?")
    return table[:, 1:].reshape(-1, 3, SIDE, SIDE), labels


def images_of(images: np.ndarray, labels: np.ndarray) -> Images:
    return Images(images=torch.from_numpy(images), labels=torch.from_numpy(labels.astype(np.int64)))
