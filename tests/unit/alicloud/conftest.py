"""A project of its own for each test."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from ali_clusters import Project

TESTS = Path(__file__).parents[2]
# What is counted beside Alibaba Cloud's own.
sys.path += [str(TESTS / folder) for folder in ("unit/aws", "unit/aws_graph", "engine")]


@pytest.fixture
def ali(tmp_path: Path) -> Project:
    return Project.make(tmp_path)
