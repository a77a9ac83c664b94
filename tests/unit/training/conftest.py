"""Small jobs, and real ranks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forked import get_ready_to_fork, on_ranks, small_job

from training.config import Job


@pytest.fixture(autouse=True, scope="session")
def _ready_to_fork() -> None:
    get_ready_to_fork()


@pytest.fixture
def small(tmp_path: Path) -> Callable[..., Job]:
    """`small("steps=20", out="a")`: a job of seconds with overrides, its results in the test's folder."""

    def make(*overrides: str, out: str = "run") -> Job:
        return small_job(tmp_path, out, *overrides)

    return make


@pytest.fixture
def ranks() -> Callable[..., list[Any]]:
    """`ranks(3, train, job)`: runs it on three ranks, returns their results in rank order."""
    return on_ranks
