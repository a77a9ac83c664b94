"""What other people keep from dnf-automatic stays, and kernels join it once."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROLES = Path(__file__).parents[3] / "playbooks/roles"
EXCLUDE, RESET = ROLES / "dnf_automatic/files/exclude.py", ROLES / "reset/files/reset.py"
MARK = "# gpufleet: kernel* is ours in the next line\n"


def excluded(file: Path) -> str:
    command = [sys.executable, EXCLUDE, file]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[base]\ndebuglevel=1\n", f"[base]\n{MARK}excludepkgs=kernel*\ndebuglevel=1\n"),
        ("[base]\nexcludepkgs = glibc, zlib\n", f"[base]\n{MARK}excludepkgs = glibc, zlib,kernel*\n"),
        ("[base]\nexcludepkgs=kernel-rt*\n", f"[base]\n{MARK}excludepkgs=kernel-rt*,kernel*\n"),
        (f"[base]\n{MARK}excludepkgs=glibc\n", f"[base]\n{MARK}excludepkgs=glibc,kernel*\n"),
    ],
)
def test_kernels_join_what_others_exclude_and_a_second_run_changes_nothing(
    tmp_path: Path, before: str, after: str
) -> None:
    file = tmp_path / "automatic.conf"
    file.write_text(before)

    told = (excluded(file), excluded(file))

    assert file.read_text() == after
    assert told == (str(file), "")


@pytest.mark.parametrize(
    "theirs", ["[base]\ndebuglevel=1\n", "[base]\nexcludepkgs=glibc\n", "[base]\nexcludepkgs = glibc, zlib", "[base]\n"]
)
def test_a_reset_leaves_what_others_exclude(tmp_path: Path, theirs: str) -> None:
    file = tmp_path / "automatic.conf"
    file.write_text(theirs)
    excluded(file)

    assert runpy.run_path(str(RESET))["kernels_let_in"](file) == [str(file)]
    assert file.read_text() == theirs


@pytest.mark.parametrize("theirs", ["[base]\nexcludepkgs=glibc kernel*\n", None])
def test_where_kernels_are_excluded_or_nothing_updates_by_itself_nothing_changes(
    tmp_path: Path, theirs: str | None
) -> None:
    file = tmp_path / "automatic.conf"
    if theirs:
        file.write_text(theirs)

    assert excluded(file) == ""
    assert (file.read_text() if file.exists() else None) == theirs
