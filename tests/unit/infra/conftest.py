"""A project of its own for each test."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from projects import REPOSITORY, Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    shutil.copy(REPOSITORY / "Pulumi.yaml", tmp_path)
    (tmp_path / "stacks").mkdir()
    (tmp_path / "infra").symlink_to(REPOSITORY / "infra")
    return Project(tmp_path)
