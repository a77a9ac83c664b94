"""The user's cache folder: downloaded archives, parsed arrays and tokenizers."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from training import atomic
from training.data.images import DataError

T = TypeVar("T")


def folder() -> Path:
    """`gpufleet` in the user's cache folder (XDG base directory specification)."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpufleet"


def named(kind: str, *parts: object) -> str:
    """A name by everything that decides the content: texts, numbers, versions, lists of them."""
    return f"{kind}-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]}"


def array(name: str, make: Callable[[], np.ndarray]) -> np.ndarray:
    """The array of that name, mapped into memory; created where it is missing. Raises DataError; see `named`."""

    def packed() -> bytes:
        file = io.BytesIO()
        np.save(file, make())
        return file.getvalue()

    return cached(
        f"{name}.npy", packed, partial(np.load, mmap_mode="c")
    )  # pages are private: the file cannot be changed


def cached(name: str, make: Callable[[], bytes], read: Callable[[Path], T]) -> T:
    """What `read` returns for the file of that name, created by `make` where it is missing. Raises DataError where it
    is damaged."""
    path = folder() / name
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic.write(path, make())
    try:
        return read(path)
    except Exception as error:  # the tokenizers' library has no narrower one
        raise DataError(f"{path} cannot be read; remove it, it is made again") from error
