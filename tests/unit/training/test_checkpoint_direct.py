"""Files that are written past the page cache: the same bytes whatever the file system does with them."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import random
from itertools import pairwise
from pathlib import Path

import pytest

from training.checkpoint import direct_io
from training.checkpoint.direct_io import DirectFile, blocks

PAGE = mmap.PAGESIZE
SIZES = [1, 511, PAGE, PAGE + 1, 3 * PAGE - 8, 4 * PAGE, 9 * PAGE + 5]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct_io, "BLOCK_BYTES", 4 * PAGE)


def written(path: Path, data: bytes, *cuts: int, read: bool = True) -> bytes:
    """What the file holds of the data, which comes in pieces; nothing where it is not read."""
    edges = [0, *sorted(cuts), len(data)]
    with DirectFile(path) as file:
        for block in blocks(memoryview(data)[start:end] for start, end in pairwise(edges)):
            file.write(block)
        file.sync()
    return path.read_bytes() if read else b""


@pytest.mark.parametrize("size", SIZES)
def test_a_file_holds_what_was_written_however_it_was_cut(tmp_path: Path, size: int):
    dice = random.Random(size)
    data = dice.randbytes(size)

    assert written(tmp_path / "file", data) == data
    assert written(tmp_path / "file", data, *dice.sample(range(size + 1), min(size, 5))) == data


@pytest.mark.parametrize("size", SIZES)
def test_a_file_system_that_writes_nothing_directly_is_written_through_the_cache(
    tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch
):
    really = os.open

    def through_the_cache_only(path: Path, flags: int, mode: int) -> int:
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return really(path, flags, mode)

    monkeypatch.setattr(direct_io.os, "open", through_the_cache_only)
    data = random.Random(size).randbytes(size)

    assert written(tmp_path / "file", data) == data


@pytest.mark.parametrize("most", [PAGE, 512, 7])
def test_a_write_that_takes_less_than_was_asked_goes_on_where_it_stopped(
    tmp_path: Path, most: int, monkeypatch: pytest.MonkeyPatch
):
    really = os.write
    monkeypatch.setattr(direct_io.os, "write", lambda file, block: really(file, block[:most]))
    data = random.Random(most).randbytes(6 * PAGE + 3)

    assert written(tmp_path / "file", data) == data


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(file: int, block: memoryview) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(direct_io.os, "write", full)

    with pytest.raises(OSError, match="No space left on device"):
        written(tmp_path / "file", bytes(PAGE))


def test_what_was_written_takes_no_room_in_the_page_cache(tmp_path: Path):
    try:
        os.close(os.open(tmp_path / "file", os.O_WRONLY | os.O_CREAT | os.O_DIRECT))
    except OSError:
        pytest.skip("the file system of the temporary folder writes nothing directly")
    written(tmp_path / "file", bytes(64 * PAGE + 1), read=False)
    (tmp_path / "other").write_bytes(bytes(64 * PAGE + 1))

    assert resident(tmp_path / "file") <= 1
    assert resident(tmp_path / "other") == 65


def resident(path: Path) -> int:
    """How many of a file's pages are in the cache (mincore(2))."""
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        held = (ctypes.c_ubyte * (len(mapped) // PAGE + 1))()
        start = ctypes.c_char.from_buffer(mapped)
        failed = ctypes.CDLL(None).mincore(ctypes.byref(start), ctypes.c_size_t(len(mapped)), held)
        del start
    assert not failed
    return sum(page & 1 for page in held)
