"""The project's state folder holds private keys: no other user looks into it."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ops.errors import CommandError
from ops.project import Project

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "Pulumi.yaml").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def mode(folder: Path) -> int:
    return stat.S_IMODE(folder.stat().st_mode)


def test_it_is_made_closed_whatever_the_umask_allows(root: Path) -> None:
    project = Project.find()
    before = os.umask(0)
    try:
        project.close_state()
    finally:
        os.umask(before)

    assert mode(project.state) == 0o700


def test_looking_for_the_project_makes_none(root: Path) -> None:
    assert not Project.find().state.exists()


@pytest.mark.parametrize("open_mode", [0o755, 0o770, 0o711, 0o777, 0o701])
def test_an_open_one_is_closed(root: Path, open_mode: int) -> None:
    (root / ".gpufleet").mkdir()
    (root / ".gpufleet").chmod(open_mode)

    assert mode(Project.find().state) == 0o700


@needs_root
def test_another_user_can_read_nothing_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with TemporaryDirectory() as folder:  # tmp_path is closed already
        Path(folder).chmod(0o755)
        (Path(folder) / "Pulumi.yaml").touch()
        monkeypatch.chdir(folder)

        before, after = read_by_another(Path(folder)), read_by_another(Path(folder), Project.find)
        monkeypatch.undo()

    assert (before, after) == ("secret", "")


def read_by_another(root: Path, prepare: Callable[[], object] = lambda: None) -> str:
    """What another user reads of a key that everybody may read, below an open state folder."""
    key = root / ".gpufleet" / "local" / "s" / "key"
    key.parent.mkdir(parents=True, exist_ok=True)
    key.write_text("secret")
    key.chmod(0o644)
    (root / ".gpufleet").chmod(0o755)
    prepare()
    return subprocess.run(["cat", key], user=NOBODY, group=NOBODY, capture_output=True, text=True, check=False).stdout


@needs_root
def test_that_of_another_user_is_refused(root: Path) -> None:
    (root / ".gpufleet").mkdir()
    os.chown(root / ".gpufleet", NOBODY, NOBODY)

    with pytest.raises(CommandError, match=rf"belongs to user {NOBODY}: remove it"):
        Project.find()
