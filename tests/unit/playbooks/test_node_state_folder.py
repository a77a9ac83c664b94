"""The node's reports, written by root in a folder that an earlier version gave to the login of jobs: nothing that the
login left there leads root to other files, or holds it up."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROLES = Path(__file__).parents[3] / "playbooks/roles"
SOMEBODY = 2001
SECONDS = 600  # after which a FIFO holds a program up, and no slow computer
CHECKS = f"import sys; sys.path.insert(0, {str(ROLES / 'verify/files')!r}); import checks; "
VERIFY = CHECKS + 'checks.main({"gpus": 0}, sys.argv[1])'
PROVEN = CHECKS + 'checks.proven(sys.argv[1], {"driver": "new"})'
DRAIN = (
    f"import sys; sys.path[:0] = [{str(ROLES / 'drain/files')!r}, {str(ROLES / 'gpu_facts/files')!r}]; "
    "import drain, pathlib; drain.take_back(pathlib.Path(sys.argv[1]))"
)
PROGRAMS = {
    "measure": lambda folder: (ROLES / "preflight/files/measure.py", folder, "begin"),
    "verify": lambda folder: ("-c", VERIFY, folder / "ready.json"),
    "drain": lambda folder: ("-c", DRAIN, folder / "ready.json"),
}
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="plants what belongs to another login: run it as root")


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    file = tmp_path / "victim"
    file.write_text("root's\n")
    return file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The login's, with an old word in it."""
    folder = tmp_path / "gpufleet"
    folder.mkdir()
    (folder / "ready.json").write_text('{"ready": true, "checks": []}')
    os.chown(folder, SOMEBODY, SOMEBODY)
    return folder


def plant(path: Path, kind: str, victim: Path) -> None:
    path.unlink(missing_ok=True)
    {"link": path.symlink_to, "hard link": path.hardlink_to, "fifo": lambda _: os.mkfifo(path)}[kind](victim)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("kind", ["link", "hard link", "fifo"])
@pytest.mark.parametrize("name", ["ready.new", "ready.json"])
def test_what_stands_in_its_place_is_replaced(folder: Path, victim: Path, program: str, kind: str, name: str) -> None:
    plant(folder / name, kind, victim)
    mode = victim.stat().st_mode

    command = [sys.executable, *map(str, PROGRAMS[program](folder))]
    subprocess.run(command, capture_output=True, check=True, timeout=SECONDS)

    assert (victim.read_text(), victim.stat().st_mode, victim.stat().st_uid) == ("root's\n", mode, 0)
    assert not (folder / "ready.json").is_symlink()
    assert json.loads((folder / "ready.json").read_text())["ready"] is False


def test_a_run_takes_the_folder_back_first(folder: Path) -> None:
    command = [sys.executable, ROLES / "preflight/files/measure.py", folder, "begin"]
    subprocess.run(command, capture_output=True, check=True)

    assert (folder.stat().st_uid, folder.stat().st_mode & 0o777) == (0, 0o755)


@pytest.mark.parametrize("owner", [0, SOMEBODY])
def test_settings_to_go_back_to_are_roots_own(tmp_path: Path, owner: int) -> None:
    before = tmp_path / "settings-before.json"
    before.write_text('{"/etc/sudoers.d/x": "ada ALL=(ALL) NOPASSWD:ALL"}')
    os.chown(before, owner, owner)
    begun = runpy.run_path(str(ROLES / "hardening/files/apply_with_revert.py"))["begun"]
    begun.__globals__["BEFORE"] = before

    assert begun() is (owner == 0)


@pytest.mark.parametrize(("owner", "counts"), [(0, True), (SOMEBODY, False)])
def test_locks_to_go_back_to_are_roots_own(tmp_path: Path, owner: int, counts: bool) -> None:
    known = tmp_path / "proven.json"
    known.write_text('[{"driver": "old"}]')
    os.chown(known, owner, owner)

    subprocess.run([sys.executable, "-c", PROVEN, known], check=True)

    assert ({"driver": "old"} in json.loads(known.read_text())) is counts
