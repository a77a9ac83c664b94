"""Packed data sets: a folder of arrays that are mapped into memory, see `training.data.packed_format`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from training import strict
from training.config.data import Packed
from training.data.images import DataError, Images, ImageSet
from training.data.packed_format import FORMAT, MANIFEST, PARTS
from training.data.text import Documents, Running, TextSet, TextSource

DIMENSIONS = {"images": (4, 1), "documents": (2, 1, 1), "running": (1,)}  # of the arrays of a part
MANIFEST_BYTES = 2**16
FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


def load(config: Packed, seed: int) -> ImageSet | TextSet:
    """The set of a folder; raises DataError for a file that is missing or cut short, or labels that cannot be.

    Tokens are not read here: a set may be far larger than memory, and each batch is looked at as it is drawn.
    """
    about = manifest(config.path)
    check(config.path / MANIFEST, about)
    train, held_out = ([mapped(config.path, name, about["files"]) for name in about[part]] for part in PARTS)
    for part, arrays in zip(PARTS, (train, held_out), strict=True):
        shaped(config.path / about[part][0], about["kind"], arrays)
        if about["classes"]:
            in_range(config.path / about[part][1], arrays[1], about["classes"])
    if about["kind"] == "running":
        return of_text(about, config.length, (Running(tokens=a[0], length=config.length) for a in (train, held_out)))
    if about["kind"] == "documents":
        documents = (
            Documents(tokens=tokens, labels=labels, families=families[0] if families else None)
            for tokens, labels, *families in (train, held_out)
        )
        return of_text(about, train[0].shape[1], documents)
    parts = (Images(images=torch.from_numpy(i), labels=torch.from_numpy(np.array(a))) for i, a in (train, held_out))
    mean, std = (tuple(v) if isinstance(v, list) else v for v in (about["mean"], about["std"]))
    return ImageSet(**dict(zip(PARTS, parts, strict=True)), classes=about["classes"], mean=mean, std=std)


def of_text(about: dict[str, Any], length: int, parts: Iterable[TextSource]) -> TextSet:
    """The set of a training and a held-out part; older folders do not name the tokenizer."""
    train, held_out = parts
    fields = {"vocabulary": about["vocabulary"], "classes": about["classes"], "tokenizer": about.get("tokenizer")}
    return TextSet(train=train, held_out=held_out, length=length, **fields)


def manifest(folder: Path) -> dict[str, Any]:
    try:
        with strict.regular(folder / MANIFEST, follow=True) as file:
            about = strict.document(file.read(MANIFEST_BYTES))
    except FileNotFoundError as error:
        raise DataError(
            f"{folder} is no packed data set: it has no {MANIFEST}; make one by `python -m training pack`"
        ) from error
    except (ValueError, strict.NotRegularFileError) as error:
        raise DataError(f"{folder / MANIFEST} is damaged; pack the set again") from error
    if not isinstance(about, dict):
        raise DataError(f"{folder / MANIFEST} is damaged; pack the set again")
    if about.get("format") != FORMAT:
        raise DataError(f"{folder} is of format {about.get('format')}, this version reads {FORMAT}; pack the set again")
    return about


def mapped(folder: Path, name: str, sizes: dict[str, int]) -> np.ndarray:
    """An array whose pages are private: the file cannot be changed."""
    path = folder / name
    if not path.is_file():
        raise DataError(f"{path} is missing; pack the set again")
    if path.stat().st_size != sizes[name]:
        raise DataError(f"{path} has {path.stat().st_size} of its {sizes[name]} bytes; pack the set again")
    try:
        with strict.regular(path, follow=True):
            return np.load(path, mmap_mode="c")
    except (ValueError, EOFError, strict.NotRegularFileError) as error:
        raise DataError(f"{path} holds no numbers; pack the set again") from error


def check(path: Path, about: dict[str, Any]) -> None:
    """Raises DataError where a manifest names files outside its folder, or has values of other kinds."""
    files = about.get("files")
    names = [about.get(part) for part in PARTS]
    sound = (
        about.get("kind") in [*DIMENSIONS]
        and strict.whole(about.get("classes"))
        and isinstance(files, dict)
        and all(FILE_NAME.fullmatch(name) and strict.whole(size) for name, size in files.items())
        and all(
            isinstance(part, list) and 1 <= len(part) <= 3 and all(isinstance(n, str) and n in files for n in part)
            for part in names
        )
        and (about["kind"] == "images" or strict.whole(about.get("vocabulary"), least=1))
        and isinstance(about.get("tokenizer"), str | None)
        and (about["kind"] != "images" or all(scale(about.get(key)) for key in ("mean", "std")))
    )
    if not sound:
        raise DataError(f"{path} names files or values that a packed set has not; pack the set again")


def scale(value: object) -> bool:
    """Whether it is a number, or a list of them for each channel."""
    return strict.number(value) or (isinstance(value, list) and 0 < len(value) <= 4 and all(map(strict.number, value)))


def shaped(path: Path, kind: str, arrays: list[np.ndarray]) -> None:
    """Raises DataError where the arrays of a part are not those of its kind: as many dimensions, as long, numbers."""
    dimensions = DIMENSIONS[kind]
    right = [a.ndim for a in arrays] == list(dimensions[: len(arrays)]) and len(arrays) >= min(2, len(dimensions))
    if not right or any(a.dtype.kind not in "iu" or len(a) != len(arrays[0]) for a in arrays):
        raise DataError(f"{path}: its arrays are not those of {kind}; pack the set again")


def in_range(path: Path, labels: np.ndarray, classes: int) -> None:
    """Raises DataError where a label is not one of 0 to classes - 1."""
    wrong = np.flatnonzero((labels < 0) | (labels >= classes))
    if len(wrong):
        first = f"the first, at {wrong[0]}, is {labels[wrong[0]]}, and the number of classes is {classes}"
        raise DataError(f"{path}: {len(wrong)} of {len(labels)} labels cannot be: {first}; pack the set again")
