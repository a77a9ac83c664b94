"""Repositories that are down for a while are asked again by the rehearsal, and what does not pass by itself is not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REHEARSE = Path(__file__).parents[3] / "playbooks/roles/locked_packages/files/rehearse_apt.py"
DOWN = "E: Failed to fetch http://mirror/InRelease  503  Service Unavailable [IP: 10.0.0.1 80]"
UNSIGNED = "E: The repository 'http://mirror/ InRelease' is not signed."
# Knows the package after the second `update`; each is a line in a file.
APT_GET = """#!/bin/sh
case "$*" in
  *--simulate*) [ "$(wc -l < asked)" -ge 2 ] || { echo "E: Unable to locate package big" >&2; exit 100; } ;;
  *) echo "$*" >> asked; [ "$(wc -l < asked)" -ge 2 ] || { echo "$SAID" >&2; exit 100; } ;;
esac
"""


def rehearsed(folder: Path, said: str) -> tuple[dict[str, list[str]], list[str]]:
    """The plan of a rehearsal where apt says this to its first `update`, and how it was asked each time."""
    (folder / "apt-get").write_text(APT_GET)
    (folder / "apt-get").chmod(0o755)
    (folder / "asked").touch()
    asked = ('{"big": "*"}', "[]", '["nvidia.*"]', '""')
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "SAID": said}
    command = [sys.executable, REHEARSE, *asked]
    told = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return json.loads(told.stdout), (folder / "asked").read_text().splitlines()


def test_repositories_that_are_down_are_asked_again_by_us_and_not_by_apt(tmp_path: Path) -> None:
    plan, asked = rehearsed(tmp_path, DOWN)

    assert plan == {"problems": [], "install": ["big"], "remove": [], "moves": []}
    assert len(asked) == 2
    assert all("Acquire::Retries=0" in each for each in asked)


@pytest.mark.parametrize("said", [UNSIGNED, DOWN.replace("503  Service Unavailable", "404  Not Found")])
def test_what_does_not_pass_by_itself_is_told_at_once(tmp_path: Path, said: str) -> None:
    plan, asked = rehearsed(tmp_path, said)

    assert (plan["problems"], len(asked)) == ([said], 1)
