"""What root puts in place on a node: whole, and never through a folder or a link of somebody else's."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PLACE = Path(__file__).parents[3] / "playbooks/roles/placed_files/files/write_files.py"
SOMEBODY = 2001
root_alone = pytest.mark.skipif(os.geteuid() != 0, reason="plants what belongs to another login: run it as root")


def place(top: Path, *wanted: dict[str, object], verb: str = "place") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, PLACE, verb, top]
    return subprocess.run(command, input=json.dumps(wanted), capture_output=True, text=True, check=False)


def file(path: Path, content: str = "new\n", **more: object) -> dict[str, object]:
    return {"path": str(path), "content": content, **more}


def test_a_file_is_placed_once_with_its_mode(tmp_path: Path) -> None:
    wanted = file(tmp_path / "etc/one", mode="0400")

    first, second = place(tmp_path, wanted), place(tmp_path, wanted)

    assert (first.stdout, second.stdout) == (f"{tmp_path}/etc/one\n", "")
    assert (tmp_path / "etc/one").read_text() == "new\n"
    assert (tmp_path / "etc/one").stat().st_mode & 0o777 == 0o400


def test_looking_changes_nothing(tmp_path: Path) -> None:
    assert (
        place(tmp_path, file(tmp_path / "etc/one"), {"path": f"{tmp_path}/folder"}, verb="look").stdout.count("\n") == 2
    )
    assert list(tmp_path.iterdir()) == []


@root_alone
def test_a_link_of_the_new_files_name_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("old\n")
    (tmp_path / "one.new").symlink_to(victim)

    assert place(tmp_path, file(tmp_path / "one")).returncode == 0
    assert (victim.read_text(), (tmp_path / "one").read_text()) == ("old\n", "new\n")


@root_alone
@pytest.mark.parametrize("kind", ["folder", "link", "open to all"])
def test_nothing_is_written_below_what_others_may_change(tmp_path: Path, kind: str) -> None:
    victim, home = tmp_path / "victim", tmp_path / "home"
    victim.mkdir()
    if kind == "link":
        home.symlink_to(victim)
    else:
        home.mkdir()
    if kind == "open to all":
        home.chmod(0o777)
    else:
        os.lchown(home, SOMEBODY, SOMEBODY)

    refused = place(tmp_path, file(home / "one"), file(home / "two/three"))

    assert refused.returncode == 1
    assert str(home) in refused.stderr
    assert list(victim.iterdir()) == []
    assert list(home.iterdir()) == []


@root_alone
def test_a_sticky_folder_may_lie_above(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    scratch.chmod(0o1777)

    assert place(tmp_path, file(scratch / "cache/one")).returncode == 0
    assert (scratch / "cache").stat().st_uid == 0


@root_alone
@pytest.mark.parametrize("kind", ["link", "fifo"])
def test_a_folder_for_a_login_is_no_link_of_that_login(tmp_path: Path, kind: str) -> None:
    victim, runs = tmp_path / "victim", tmp_path / "runs"
    victim.mkdir()
    runs.symlink_to(victim) if kind == "link" else os.mkfifo(runs)
    os.lchown(runs, SOMEBODY, SOMEBODY)

    refused = place(tmp_path, {"path": str(runs), "owner": "nobody"})

    assert f"{runs} is to be a folder" in refused.stderr
    assert victim.stat().st_uid == 0


@root_alone
def test_a_link_that_root_has_made_is_followed(tmp_path: Path) -> None:
    (tmp_path / "large").mkdir()
    (tmp_path / "runs").symlink_to(tmp_path / "large")
    wanted: dict[str, object] = {"path": str(tmp_path / "runs"), "owner": "nobody"}

    first, second = place(tmp_path, wanted), place(tmp_path, wanted)

    assert (first.returncode, second.stdout) == (0, "")
    assert (tmp_path / "large").owner() == "nobody"


def test_content_that_is_no_text_comes_in_base64(tmp_path: Path) -> None:
    wanted = file(tmp_path / "key", base64.b64encode(b"\x00\xff").decode(), base64=True, mode="0400")

    first, second = place(tmp_path, wanted), place(tmp_path, wanted)

    assert (first.returncode, second.stdout, (tmp_path / "key").read_bytes()) == (0, "", b"\x00\xff")
