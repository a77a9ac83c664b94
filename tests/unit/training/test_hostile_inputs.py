"""Pictures, weights and job files as somebody who means harm would make them: each is refused in one line."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from training import strict
from training.config.job import JobError, load
from training.data.decoders.pillow import pixels
from training.models.weights import read as read_weights

PATIENCE_SECONDS = 600  # where nothing may be waited for; a slow computer is no wait


def test_a_picture_is_never_a_program(tmp_path: Path) -> None:
    """Pillow hands PostScript, by whatever name, to Ghostscript."""
    path = tmp_path / "cat.jpg"
    path.write_bytes(
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\n"
        + f"({tmp_path}/ran) (w) file closefile\nshowpage\n".encode()
    )
    with pytest.raises(OSError, match="cannot identify image file"):
        pixels(path, 8, None)
    assert not (tmp_path / "ran").exists()


@pytest.mark.timeout(PATIENCE_SECONDS)
def test_a_pipe_is_no_picture(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "cat.png")
    with pytest.raises(strict.NotRegularFileError):
        pixels(tmp_path / "cat.png", 8, None)
    Image.new("RGB", (8, 8)).save(tmp_path / "dog.png")
    (tmp_path / "link.png").symlink_to("dog.png")  # data sets are laid out by links
    assert pixels(tmp_path / "link.png", 8, None).shape == (8, 8, 3)


ODD_WEIGHTS: dict[str, Callable[[Path], Any]] = {
    "sparse": lambda path: torch.save({"w": torch.eye(3).to_sparse()}, path),
    "on no device": lambda path: torch.save({"w": torch.empty(2**40, device="meta")}, path),
    "a number for a name": lambda path: torch.save({1: torch.zeros(1)}, path),
    "no tensors": lambda path: torch.save({"w": [1, 2]}, path),
    "empty": Path.touch,
    "pipe": os.mkfifo,
    "text": lambda path: path.write_bytes(b"\x80\x02}q\x00."),
}


@pytest.mark.timeout(PATIENCE_SECONDS)
@pytest.mark.parametrize("what", ODD_WEIGHTS)
def test_weights_that_are_no_tensors_in_memory_are_refused_in_a_line(tmp_path: Path, what: str) -> None:
    ODD_WEIGHTS[what](tmp_path / "w.pt")

    with pytest.raises(JobError) as refusal:
        read_weights(tmp_path / "w.pt")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("deep", ["a = " + "[" * 50_000, "a = " + "{b=" * 50_000])
def test_a_job_file_that_nests_without_end_is_a_line(tmp_path: Path, deep: str) -> None:
    (tmp_path / "job.toml").write_text(deep)
    with pytest.raises(JobError) as refusal:
        load(tmp_path / "job.toml", [])
    assert "\n" not in str(refusal.value)
    with pytest.raises(JobError):
        load("mnist", [f"steps={deep.removeprefix('a = ')}"])
