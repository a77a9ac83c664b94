"""The user's cache folder: what was fetched, and arrays that take long to make."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np


def folder() -> Path:
    """`gpufleet` in the user's cache folder (XDG base directory specification)."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpufleet"


def named(kind: str, *parts: object) -> str:
    """A name by everything that decides the content: texts, numbers, versions, lists of them."""
    return f"{kind}-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]}"


def kept(name: str, make: Callable[[], np.ndarray]) -> np.ndarray:
    """The array of that name, mapped into memory; made where it is not there yet. See `named`."""
    path = folder() / f"{name}.npy"
    if not path.is_file():
        write_aside(path, make())
    return np.load(path, mmap_mode="c")  # pages are private: nobody can write the file


def write_aside(path: Path, table: np.ndarray) -> None:
    """Writes under another name and renames, so that no rank that starts at the same time reads half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-", delete=False) as file:
        np.save(file, table)
        file.flush()
        os.fsync(file.fileno())
    Path(file.name).rename(path)
