"""A project of its own for each test."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from ali_clusters import Project

TESTS = Path(__file__).parents[2]
sys.path += [str(TESTS / "unit" / "aws_graph"), str(TESTS / "engine")]  # what is counted beside Alibaba Cloud's own


@pytest.fixture
def ali(tmp_path: Path) -> Project:
    return Project.make(tmp_path)
