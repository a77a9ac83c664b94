"""A disk that takes nothing: no old word of readiness stays on it, and packages that do not fit are not begun with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROLES = Path(__file__).parents[3] / "playbooks/roles"
ARCHIVES = Path("/var/cache/apt/archives")
# A process that may not make any file longer gets an error at every write, as on a full disk.
FULL = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))"
CHECK = (
    f"import sys; sys.path.insert(0, {str(ROLES / 'verify/files')!r}); import checks; checks.main({{}}, sys.argv[1])"
)
APT = {
    "apt-get": 'case "$*" in *--simulate*) echo "Inst big (1.0 Debian)" ;; esac',
    "apt-cache": 'printf "Package: big\\nInstalled-Size: 1\\nSize: 9000000000000000\\n"',
}


def said(*command: object, path: str = os.environ["PATH"]) -> dict[str, object]:
    told = subprocess.run(
        [sys.executable, *map(str, command)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PATH": path},
    )
    return json.loads(told.stdout)


@pytest.fixture
def word(tmp_path: Path) -> Path:
    """A node's old word."""
    file = tmp_path / "ready.json"
    file.write_text('{"ready": true, "checks": []}')
    return file


def test_a_run_that_begins_on_a_full_disk_takes_the_old_word_away(word: Path) -> None:
    program = (ROLES / "preflight/files/measure.py").read_text()

    measured = said("-c", f"{FULL}\n{program}", word.parent, "begin")

    assert measured["disk"] == str(word.parent)
    assert not word.exists()


def test_checks_on_a_full_disk_say_so_and_take_the_old_word_away(word: Path) -> None:
    report = said("-c", f"{FULL}\n{CHECK}", word)

    assert report["ready"] is False
    assert "ready.json" in str(report["checks"])
    assert not word.exists()


@pytest.mark.skipif(not ARCHIVES.is_dir(), reason="this computer has no apt")
def test_packages_that_do_not_fit_where_apt_keeps_them_are_named_with_the_place(tmp_path: Path) -> None:
    for name, text in APT.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    asked = ('{"big": "*"}', "[]", '["nvidia.*"]', '""')

    plan = said(ROLES / "locked_packages/files/rehearse_apt.py", *asked, path=f"{tmp_path}:{os.environ['PATH']}")

    assert "MiB are free at" in str(plan["problems"])
    assert "free some" in str(plan["problems"])
