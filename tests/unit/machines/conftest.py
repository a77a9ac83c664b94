"""A project of its own for each test."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from own_machines import Project

sys.path.append(str(Path(__file__).parents[1] / "drivers"))  # wrong tuples


@pytest.fixture
def machines(tmp_path: Path) -> Project:
    return Project.make(tmp_path)
