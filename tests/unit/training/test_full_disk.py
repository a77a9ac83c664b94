"""A file system without room: one line that says what to do, nothing half-written, and the older checkpoints stay."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from trained import pack_job

from training.checkpoint.store import Store
from training.config.job import Job
from training.data.images import DataError
from training.loop import train
from training.metrics.events import Report

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """`disk(pages)`: the folder of a file system with so much room, gone at the end."""
    mounted: list[Path] = []

    def mount(pages: int) -> Path:
        folder = tmp_path / "disk"
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={pages * PAGE_BYTES}", "tmpfs", str(folder)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"mounting a small file system takes root: {done.stderr.strip()}")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", str(folder)], check=True)


def pages(file: Path) -> int:
    return -(-file.stat().st_size // PAGE_BYTES)


def test_a_set_for_which_there_is_no_room_is_not_begun(small: Callable[..., Job], disk: Callable[[int], Path]):
    folder = disk(2) / "packed"

    with pytest.raises(DataError, match=r"cannot be packed: train-0\.npy needs 0\.00 GB, .*; free some, or name"):
        pack_job(small(), folder)

    assert not list(folder.parent.iterdir())


def test_a_disk_that_is_full_before_the_last_file_keeps_nothing_of_a_set(
    small: Callable[..., Job], disk: Callable[[int], Path], tmp_path: Path
):
    pack_job(small(), tmp_path / "elsewhere")
    room = sum(pages(file) for file in (tmp_path / "elsewhere").glob("*.npy"))
    folder = disk(room) / "packed"

    with pytest.raises(DataError, match=r"packed cannot be packed: No space left on device, 0\.00 GB are free"):
        pack_job(small(), folder)

    assert not list(folder.parent.iterdir())


class FillsUp(Report):
    """Leaves no room on the disk once a checkpoint is there, and remembers what it is told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.told: list[str] = []

    def checkpoint(self, step: int) -> None:
        free = os.statvfs(self.folder).f_bavail * PAGE_BYTES
        (self.folder / "ballast").write_bytes(bytes(free))

    def note(self, text: str) -> None:
        self.told.append(text)


def test_a_run_that_cannot_write_its_metrics_ends_with_what_to_do_and_a_valid_checkpoint(
    small: Callable[..., Job], disk: Callable[[int], Path]
):
    folder = disk(400)
    job = small(f"out={folder / 'run'}", "steps=200", "checkpoint.every_steps=2")

    with pytest.raises(OSError, match=r"No space left on device: .* make room and start it again: '.*metrics\.jsonl'"):
        train(job, report=FillsUp(folder))
    for saving in (thread for thread in threading.enumerate() if thread.name.startswith("checkpoint")):
        saving.join()  # an error does not wait for the save in flight, which fills the disk again
    (folder / "ballast").unlink()

    assert train(small(f"out={folder / 'run'}", "steps=6")).steps == 6


def test_on_a_full_disk_a_run_goes_on_and_keeps_its_older_checkpoint(
    small: Callable[..., Job], disk: Callable[[int], Path]
):
    folder = disk(400)
    job = small(f"out={folder / 'run'}", "steps=6", "checkpoint.every_steps=2")
    watching = FillsUp(folder)

    with pytest.raises(OSError, match=r"step 6 is not saved: No space left on device: .*; free some of it, or set"):
        train(job, report=watching)

    assert [line.partition(":")[0] for line in watching.told] == ["step 4 is not saved"]
    found = Store(job.out / "checkpoints").newest()
    assert found.contents is not None
    assert found.contents.step == 2
    assert not list((job.out / "checkpoints").glob(".writing-*"))
