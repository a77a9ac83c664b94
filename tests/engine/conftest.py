"""A project of its own for each test module, and the real engine on it."""

from __future__ import annotations

import os
import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine_runner import EngineRunner

from infra.clouds.local import sweep
from ops import engine
from ops.failure import Failure
from ops.project import Project

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.append(str(REPOSITORY / "tests" / "lab"))  # its hosts and its package repositories


@pytest.fixture(scope="module")
def pulumi(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineRunner]:
    """The engine on a fresh project; whatever its local sites still hold at the end is removed."""
    root = tmp_path_factory.mktemp("project")
    (root / "stacks").mkdir()
    (root / ".gpufleet").mkdir()
    shutil.copy(REPOSITORY / "Pulumi.yaml", root)
    (root / "infra").symlink_to(REPOSITORY / "infra")
    (root / ".venv").symlink_to(REPOSITORY / ".venv")
    yield EngineRunner(root=root, environment=_environment(root))
    for site in root.glob(".gpufleet/local/*"):
        sweep.remove(site)


@pytest.fixture(scope="module")
def loopback() -> str:
    """A loopback network that no other test and no stack of a person is likely to use."""
    return f"127.{random.randrange(64, 250)}.{random.randrange(256)}.0/24"


def _environment(root: Path) -> dict[str, str]:
    """That of the command line, made for the temporary project; nothing of the caller's own Pulumi gets through."""
    with pytest.MonkeyPatch.context() as caller:
        for name in [name for name in os.environ if name.startswith("PULUMI_")]:
            caller.delenv(name)
        try:
            found = engine.binary(Project(REPOSITORY))
        except Failure as missing:
            pytest.skip(str(missing))
        (root / ".gpufleet" / "engine").write_text(str(found))
        return engine.environment(Project(root))
