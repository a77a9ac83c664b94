"""Files written past the page cache, where the file system supports it (open(2), O_DIRECT).

A checkpoint is not read soon. Copying it into the page cache would take processor time from the step loop, and displace
the data set that is mapped there.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType

import numpy as np

BLOCK_BYTES = 16 * 2**20  # copied, hashed and written at a time: all leave the interpreter to the step loop meanwhile
NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


class DirectFile:
    """A new file for `blocks`. What the file system does not take directly, such as an end that is no whole number of
    its own blocks, goes through the cache."""

    def __init__(self, path: Path) -> None:
        try:
            self._descriptor = os.open(path, NEW | os.O_DIRECT, 0o666)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            self._descriptor = os.open(path, NEW, 0o666)

    def __enter__(self) -> DirectFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.close(self._descriptor)

    def write(self, block: memoryview) -> None:
        """Raises OSError where the disk is full or gone."""
        while block:
            try:
                block = block[os.write(self._descriptor, block) :]
            except OSError as error:
                flags = fcntl.fcntl(self._descriptor, fcntl.F_GETFL)
                if error.errno != errno.EINVAL or not flags & os.O_DIRECT:
                    raise
                fcntl.fcntl(self._descriptor, fcntl.F_SETFL, flags & ~os.O_DIRECT)

    def sync(self) -> None:
        os.fsync(self._descriptor)


def blocks(pieces: Iterable[memoryview]) -> Iterator[memoryview]:
    """The pieces' bytes in memory that begins with a page, as direct writing needs it: BLOCK_BYTES at a time, at last
    what is left. Each block is gone when the next is asked for."""
    buffer = np.frombuffer(mmap.mmap(-1, BLOCK_BYTES), np.uint8)
    filled = 0
    for piece in pieces:
        rest = np.frombuffer(piece, np.uint8)
        while rest.size:
            part, rest = np.split(rest, [BLOCK_BYTES - filled])
            buffer[filled : filled + part.size] = part
            filled += part.size
            if filled == BLOCK_BYTES:
                yield buffer.data
                filled = 0
    if filled:
        yield buffer[:filled].data
