"""Folders that change hands for the login of jobs: what others have planted in them leads root nowhere."""

from __future__ import annotations

import os
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")

ROLE = Path(__file__).parents[3] / "playbooks/roles/job_login"
OPERATOR, JOB, OTHER = 1000, 857, 1234


@pytest.fixture
def settle() -> dict[str, Any]:
    return runpy.run_path(str(ROLE / "files/set_up_login.py"))


def owned(path: Path, uid: int, text: str | None = None) -> Path:
    """A file with this text, or a folder, of that login."""
    if text is None:
        path.mkdir()
    else:
        path.write_text(text)
    os.chown(path, uid, uid, follow_symlinks=False)
    return path


def uid(path: Path) -> int:
    return path.lstat().st_uid


def make(settle: dict[str, Any], runs: Path) -> None:
    _, right, act = settle["runs_step"](runs, JOB, OPERATOR)
    assert not right()
    act()
    assert right()


def test_runs_of_the_operator_change_hands_to_the_last_file(settle: dict[str, Any], tmp_path: Path) -> None:
    runs = owned(tmp_path / "runs", OPERATOR)
    shard = owned(owned(runs / "a-1", OPERATOR) / "shard", OPERATOR, "weights")

    make(settle, runs)

    assert {uid(runs), uid(shard.parent), uid(shard)} == {JOB}
    assert runs.stat().st_mode & 0o7777 == 0o750


@pytest.mark.parametrize("owner", [None, 0, OPERATOR])
def test_a_folder_that_is_missing_or_empty_becomes_that_of_jobs(
    settle: dict[str, Any], tmp_path: Path, owner: int | None
) -> None:
    runs = tmp_path / "runs"
    if owner is not None:
        owned(runs, owner)

    make(settle, runs)

    assert uid(runs) == JOB


@pytest.mark.parametrize("kind", ["link to a file", "link to a folder", "hard link", "pipe", "device", "of another"])
def test_what_may_lead_elsewhere_keeps_its_owner(settle: dict[str, Any], tmp_path: Path, kind: str) -> None:
    runs, outside = owned(tmp_path / "runs", OPERATOR), owned(tmp_path / "outside", OPERATOR)
    secret, planted = owned(outside / "secret", OPERATOR, "x"), runs / "planted"
    plant: dict[str, Callable[[], object]] = {
        "link to a file": lambda: planted.symlink_to(secret),
        "link to a folder": lambda: planted.symlink_to(outside),
        "hard link": lambda: planted.hardlink_to(secret),
        "pipe": lambda: os.mkfifo(planted),
        "device": lambda: os.mknod(planted, 0o020600, os.makedev(1, 7)),
        "of another": lambda: owned(planted, OTHER, ""),
    }
    plant[kind]()
    before = uid(planted)

    make(settle, runs)

    assert (uid(planted), uid(secret), uid(outside)) == (before, OPERATOR, OPERATOR)


@pytest.mark.parametrize("owner", [OTHER, 0])
def test_a_full_folder_of_somebody_else_is_refused_and_left_alone(
    settle: dict[str, Any], tmp_path: Path, owner: int
) -> None:
    runs = owned(tmp_path / "runs", owner)
    owned(runs / "file", owner, "")

    with pytest.raises(SystemExit, match=f"belongs to the login {owner}: give it to {JOB}, or move it away"):
        make(settle, runs)

    assert uid(runs) == owner


def test_a_link_in_place_of_runs_is_refused(settle: dict[str, Any], tmp_path: Path) -> None:
    outside = owned(tmp_path / "outside", OPERATOR)
    (tmp_path / "runs").symlink_to(outside)

    with pytest.raises(SystemExit, match="runs: a link or no folder: remove it"):
        make(settle, tmp_path / "runs")

    assert uid(outside) == OPERATOR


def test_links_that_wait_for_roots_next_report_are_gone(settle: dict[str, Any], tmp_path: Path) -> None:
    state, outside = owned(tmp_path / "gpufleet", OPERATOR), owned(tmp_path / "outside", 0, "host's own")
    (state / "ready.new").symlink_to(outside)
    (state / "proven.json").hardlink_to(outside)
    owned(state / "ready.json", 0, "{}")
    owned(state / "jobs", OPERATOR)

    settle["take_over"](state)

    assert sorted(path.name for path in state.iterdir()) == ["jobs", "ready.json"]
    assert (uid(state), outside.read_text()) == (0, "host's own")
