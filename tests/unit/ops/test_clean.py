"""`make clean` takes away what the engine knows of stacks: not of those that are still there."""

from __future__ import annotations

import subprocess
from pathlib import Path

MAKEFILE = Path(__file__).resolve().parents[3] / "Makefile"


def cleaned(project: Path, *stacks: str) -> subprocess.CompletedProcess[str]:
    """What `make clean` would do in a project with these stacks."""
    states = project / ".gpufleet" / "pulumi" / ".pulumi" / "stacks" / "gpufleet"
    states.mkdir(parents=True)
    for name in (*(f"{stack}.json" for stack in stacks), "gone.json.bak"):
        (states / name).touch()
    dry = ["make", "--dry-run", "--file", str(MAKEFILE), "clean"]
    return subprocess.run(dry, cwd=project, capture_output=True, text=True, check=False)


def test_clean_takes_away_what_is_of_this_computer(tmp_path: Path) -> None:
    output = cleaned(tmp_path, "local")

    assert output.returncode == 0
    assert "rm -rf .venv" in output.stdout


def test_clean_refuses_while_other_stacks_are_there_and_names_them(tmp_path: Path) -> None:
    output = cleaned(tmp_path, "local", "a100-prod", "x.y")

    assert output.returncode != 0
    assert "rm -rf" not in output.stdout
    assert "still there: a100-prod x.y; end each first with `gpufleet down STACK`" in output.stderr
