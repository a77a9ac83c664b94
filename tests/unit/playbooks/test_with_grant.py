"""A run's grant holds for as long as root's process that waits for the run, however that ends."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ops import storage_grants

FILES = Path(__file__).parents[3] / "playbooks/roles/storage_sessions/files"
PYTHON = shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable
GRANT = json.dumps({"places": [{"bucket": "data", "prefix": "runs/a/", "mode": "upload"}]})


def command(
    folder: Path, *program: str, login: str = "gpufleet-job", run: str = "a-1", grant: str = GRANT
) -> list[str]:
    """As `gpufleet train` has it, for this folder."""
    words = storage_grants.command(login, run, grant)
    here = {storage_grants.WITH_GRANT: str(FILES / "with_grant.py"), storage_grants.RUNNING: str(folder)}
    return [PYTHON, *(here.get(word, word) for word in words[1:]), *program]


def grants(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.json"))


def is_locked(file: Path) -> bool:
    with file.open() as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def begun(folder: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(command(folder, "sleep", "60"), stdin=subprocess.DEVNULL)
    while not grants(folder):
        time.sleep(0.01)
    return process


def test_the_grant_is_there_while_the_program_runs_and_gone_with_its_exit_code(tmp_path: Path) -> None:
    shown = (
        "import pathlib, sys; print(*pathlib.Path(sys.argv[1]).rglob('*.json')); print(sys.stdin.read()); sys.exit(75)"
    )

    ended = subprocess.run(
        command(tmp_path, sys.executable, "-c", shown, str(tmp_path)),
        input="given",
        capture_output=True,
        text=True,
        check=False,
    )

    file, given = ended.stdout.split()
    assert (ended.returncode, given) == (75, "given")
    assert Path(file).parent == tmp_path / "gpufleet-job"
    assert grants(tmp_path) == []


def test_the_grant_is_roots_alone_and_locked(tmp_path: Path) -> None:
    process = begun(tmp_path)
    (file,) = grants(tmp_path)

    seen = (file.stat().st_mode & 0o777, file.stat().st_uid, is_locked(file), file.read_text())
    process.terminate()

    assert seen == (0o600, os.geteuid(), True, GRANT)
    assert process.wait() == 128 + signal.SIGTERM
    assert grants(tmp_path) == []


def test_a_grant_whose_process_is_killed_holds_no_longer_and_goes_with_the_next_run(tmp_path: Path) -> None:
    process = begun(tmp_path)
    (file,) = grants(tmp_path)
    process.kill()
    process.wait()
    locked = is_locked(file)

    after = subprocess.run(command(tmp_path, "true", run="b-1"), check=False).returncode

    assert (locked, after, grants(tmp_path)) == (False, 0, [])


def test_the_program_does_not_hold_the_grant_itself(tmp_path: Path) -> None:
    """A process that a job leaves behind keeps nothing."""
    left = (
        "import subprocess; print(subprocess.Popen(['sleep', '30'], start_new_session=True, stdout=-3, stderr=-3).pid)"
    )

    ended = subprocess.run(command(tmp_path, sys.executable, "-c", left), capture_output=True, text=True, check=True)

    descriptors = Path("/proc", ended.stdout.strip(), "fd")
    leads_to = [str(each.readlink()) for each in descriptors.iterdir()]
    os.kill(int(ended.stdout), signal.SIGKILL)
    assert grants(tmp_path) == []
    assert not [path for path in leads_to if str(tmp_path) in path]


@pytest.mark.parametrize(
    "wrong",
    [
        {"login": "../x"},
        {"run": "../x"},
        {"run": ""},
        {"grant": "{"},
        {"grant": GRANT.replace("runs/a/", "")},
        {"grant": GRANT.replace("runs/a/", "*/")},
    ],
)
def test_what_is_no_grant_starts_nothing(tmp_path: Path, wrong: dict[str, str]) -> None:
    ended = subprocess.run(command(tmp_path, "touch", f"{tmp_path}/ran", **wrong), capture_output=True, check=False)

    assert ended.returncode == 1
    assert list(tmp_path.iterdir()) == []
