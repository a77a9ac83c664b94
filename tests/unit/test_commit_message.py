"""The subject of a commit is short and in the imperative."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools.commit_message import mistakes

REPOSITORY = Path(__file__).resolve().parents[2]
HOOK = REPOSITORY / "tools" / "commit_message.py"


@pytest.mark.parametrize(
    "message",
    [
        "Add a region",
        "Seed the shuffle",
        f"Name {'x' * 67}",
        "Add a region\n\nIt is long: " + "x" * 80,
        "Add a region\n# Please enter the commit message",
        "Merge branch 'topic' into main, whose name is longer than any subject may be in this repository",
    ],
)
def test_a_sound_message_has_no_mistakes(message: str) -> None:
    assert list(mistakes(message)) == []


@pytest.mark.parametrize(
    ("message", "mistake"),
    [
        ("", "is empty"),
        ("# only a comment", "is empty"),
        (f"Name {'x' * 68}", "has 73 characters, at most 72"),
        ("Added a region", "begins with 'added'"),
        ("Adding a region", "begins with 'adding'"),
        ("Add a region.", "ends with a full stop"),
        ("Add a region\nbecause", "the second line is not empty"),
    ],
)
def test_a_wrong_message_is_refused_with_the_reason(message: str, mistake: str) -> None:
    (line,) = mistakes(message)

    assert mistake in line


def test_git_refuses_the_commit(tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e@example.com"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    hook = tmp_path / ".git" / "hooks" / "commit-msg"
    hook.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{HOOK}" "$1"\n')
    hook.chmod(0o755)

    def commit(message: str) -> subprocess.CompletedProcess[str]:
        command = [*git, "commit", "--allow-empty", "-m", message]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert commit("Add x").returncode == 0
    assert (refused := commit("Added x")).returncode == 1
    assert refused.stderr.startswith("the subject begins with 'added'")


def test_pre_commit_runs_the_hook_on_messages() -> None:
    text = (REPOSITORY / ".pre-commit-config.yaml").read_text(encoding="utf-8")

    assert "entry: .venv/bin/python tools/commit_message.py" in text
    assert "default_install_hook_types: [pre-commit, commit-msg]" in text
