"""A project of its own for each test module, and the real engine on it."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine_runner import EngineRunner

from infra.clouds.local.nodes import sweep

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.append(str(REPOSITORY / "tests" / "lab"))  # its hosts and its package repositories


@pytest.fixture(scope="module")
def pulumi(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineRunner]:
    """The engine on a fresh project; whatever its local sites still hold at the end is removed."""
    root = tmp_path_factory.mktemp("project")
    yield EngineRunner.on_a_project(root)
    for site in root.glob(".gpufleet/local/*"):
        sweep.remove(site)


@pytest.fixture(scope="module")
def loopback() -> str:
    """A loopback network that no other test and no stack of a person is likely to use."""
    return f"127.{random.randrange(64, 250)}.{random.randrange(256)}.0/24"
