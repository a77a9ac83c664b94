"""Reading what somebody else may have written: JSON with one meaning, and files that are files. Loads nothing."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any, NoReturn


class NoFile(Exception):
    """What has the name is no regular file; the message says so."""


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
def regular(path: Path) -> Iterator[BufferedReader]:
    """The open file. Raises NoFile for a link, a pipe, a folder or a device, without waiting for any of them; else
    OSError as opening does."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise NoFile(f"{path.name} is a link, or no file") from error
        raise
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NoFile(f"{path.name} is no regular file")
        yield file


def size(file: BufferedReader) -> int:
    """Bytes of an open file."""
    return os.fstat(file.fileno()).st_size


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has a key twice")
    return found


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")
