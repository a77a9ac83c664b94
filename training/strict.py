"""Strict reading of files that others may have written: JSON without duplicate keys or NaN, regular files only. Imports
no third-party package."""

from __future__ import annotations

import errno
import json
import math
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any, NoReturn

MOST_LINE_BYTES = 2**16


class NotRegularFileError(OSError):
    """What has the name is not a regular file; the message says so."""


def document(text: bytes | bytearray | str) -> Any:
    """The value of a JSON text. Raises ValueError where it nests too deeply, or means different things to different
    readers: a key twice in an object, NaN, infinities."""
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_no_number)
    except RecursionError as error:
        raise ValueError("it nests too deeply") from error


def whole(value: object, least: int = 0, most: int = 2**63 - 1) -> bool:
    """Whether it is a whole number in these limits; True and 1.0 are none."""
    return type(value) is int and least <= value <= most


@contextmanager
def regular(path: Path, *, follow: bool = False) -> Iterator[BufferedReader]:
    """The open file. Raises NotRegularFileError, without waiting, for a pipe, a folder, a device, or a link that is not
    to be followed; else OSError as opening does."""
    try:
        links = 0 if follow else os.O_NOFOLLOW
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | links)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise NotRegularFileError(f"{path.name} is a link, or not a file") from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegularFileError(f"{path.name} is not a regular file")
    with os.fdopen(descriptor, "rb") as file:
        yield file


def number(value: object) -> bool:
    """Whether it is a finite number; True is none."""
    return type(value) in (int, float) and math.isfinite(value)  # pyright: ignore[reportArgumentType]: just seen


def rows(path: Path) -> list[dict[str, Any]]:
    """The objects in a file of one JSON object a line, such as a run's metrics; other lines, and what a kill cut short,
    are left out. Every one has a `step`, a whole number. None where there is no file."""
    parsed = []
    try:
        with regular(path) as file:
            while line := file.readline(MOST_LINE_BYTES):
                try:
                    row = document(line) if line.endswith(b"}\n") else None
                except ValueError:
                    continue
                if isinstance(row, dict) and whole(row.get("step")):
                    parsed.append(row)
    except (FileNotFoundError, NotRegularFileError):
        return []
    return parsed


def size(file: BufferedReader) -> int:
    """Bytes of an open file."""
    return os.fstat(file.fileno()).st_size


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("an object has a key twice")
    return values


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")
