"""A good job file, and how one comes into a folder."""

from __future__ import annotations

from pathlib import Path

GOOD = """\
steps = 20
[model]
kind = "cnn"
[data]
kind = "mnist5k"
global_batch = 64
[optimizer]
kind = "sgd"
lr = 0.1
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "job.toml"
    path.write_text(text)
    return path
