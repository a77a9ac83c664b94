"""What the page on testing shows runs as it stands, and fails when the stack is not as it says."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from graph_projects import REPOSITORY

EXAMPLES = REPOSITORY / "docs" / "examples"


def ran(folder: Path, name: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder / name)]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["test_my_stack.py", "test_with_pulumi_mocks.py"])
def test_an_example_passes(name: str) -> None:
    ended = ran(EXAMPLES, name)

    assert ended.returncode == 0, ended.stdout
    assert " passed" in ended.stdout


def test_the_example_notices_a_door_that_was_opened(tmp_path: Path) -> None:
    (tmp_path / "infra").symlink_to(REPOSITORY / "infra")
    (tmp_path / "stacks").mkdir()
    shutil.copy(REPOSITORY / "Pulumi.yaml", tmp_path)
    (tmp_path / "docs" / "examples").mkdir(parents=True)
    example = shutil.copy(EXAMPLES / "test_my_stack.py", tmp_path / "docs" / "examples")
    stack = (REPOSITORY / "stacks" / "Pulumi.a100-prod.yaml").read_text()
    (tmp_path / "stacks" / "Pulumi.a100-prod.yaml").write_text(stack.replace("203.0.113.0/24", "198.51.100.0/24"))

    ended = ran(Path(example).parent, "test_my_stack.py")

    assert ended.returncode == 1
    assert "FAILED" in ended.stdout
    assert "test_only_our_network_may_log_in" in ended.stdout
    assert "4 passed" in ended.stdout
