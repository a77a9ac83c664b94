"""What a person who got something wrong sees of the command line: lines, an exit code, and nothing created."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
TWO_MISTAKES = """\
config:
  gpufleet:cluster:
    cloud: local
    isolation: proces
    nodes:
      - {name: node, count: 0}
"""
REFUSED = """\
config:
  gpufleet:cluster:
    cloud: local
    isolation: process
    network: {cidr: 192.168.7.0/24}
    nodes:
      - {name: node, count: 1}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    shutil.copy(REPOSITORY / "Pulumi.yaml", tmp_path)
    (tmp_path / "stacks").mkdir()
    (tmp_path / "infra").symlink_to(REPOSITORY / "infra")
    return tmp_path


def gpufleet(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ops", *arguments]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command", ["plan", "up", "status"])
def test_a_wrong_stack_file_gets_a_line_a_mistake_and_creates_nothing(project: Path, command: str) -> None:
    (project / "stacks" / "Pulumi.wrong.yaml").write_text(TWO_MISTAKES)

    answer = gpufleet(project, command, "wrong")

    assert (answer.returncode, answer.stdout) == (2, "")
    assert [line.split(": ")[0] for line in answer.stderr.splitlines()] == [
        "stacks/Pulumi.wrong.yaml:4 cluster.isolation",
        "stacks/Pulumi.wrong.yaml:6 cluster.nodes[0].count",
    ]
    assert not (project / ".gpufleet").exists()


def test_a_stack_that_does_not_exist_is_told_with_the_nearest_name(project: Path) -> None:
    (project / "stacks" / "Pulumi.trial.yaml").write_text(TWO_MISTAKES)

    answer = gpufleet(project, "plan", "trail")

    assert answer.returncode == 2
    assert "did you mean 'trial'?" in answer.stderr


@pytest.mark.parametrize("command", ["plan", "up"])
def test_a_plan_that_a_rule_refuses_ends_with_one(project: Path, command: str) -> None:
    (project / "stacks" / "Pulumi.refused.yaml").write_text(REFUSED)

    answer = gpufleet(project, command, "refused")

    assert answer.returncode == 1
    assert "stacks/Pulumi.refused.yaml:5 cluster.network.cidr: " in answer.stdout + answer.stderr
    assert "[process-nodes-are-on-loopback]" in answer.stdout + answer.stderr
    assert not (project / ".gpufleet").exists()


def test_outside_a_project_the_remedy_is_told(tmp_path: Path) -> None:
    answer = gpufleet(tmp_path, "plan", "local")

    assert answer.returncode == 2
    assert answer.stderr == f"no Pulumi.yaml in {tmp_path} or above it: run gpufleet inside a project\n"
