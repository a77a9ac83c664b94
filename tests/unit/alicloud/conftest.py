"""A project of its own for each test."""

from __future__ import annotations

from pathlib import Path

import pytest
from ali_clusters import Project


@pytest.fixture
def ali(tmp_path: Path) -> Project:
    return Project.make(tmp_path)
