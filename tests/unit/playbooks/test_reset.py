"""What a reset takes away below its folders, and what stays."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

RESET = Path(__file__).parents[3] / "playbooks/roles/reset/files/reset.py"


@pytest.fixture
def reset(tmp_path: Path) -> dict[str, Any]:
    """The program's names, with every path below another root."""
    names = runpy.run_path(str(RESET))["files"].__globals__
    for places in ("PLACES", "FOLDERS", "SIGNED", "GENERATED", "DATA"):
        names[places] = tuple(f"{tmp_path}{path}" for path in names[places])
    return names


def test_checkpoints_job_files_and_disk_keys_stay(tmp_path: Path, reset: dict[str, Any]) -> None:
    kept = (
        "etc/gpufleet/keys/scratch",
        "etc/gpufleet/tenants.d/ada",
        "var/lib/gpufleet/jobs/first.toml",
        "var/lib/gpufleet/runs/first/step/0.pt",
    )
    ours = ("etc/gpufleet/node.json", "opt/gpufleet/venv/bin/python", "var/lib/gpufleet/ready.json")
    for path in map(tmp_path.joinpath, (*kept, *ours)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    gone = reset["files"]()

    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()} == set(kept)
    assert gone == [f"{tmp_path}/{path}" for path in (ours[0], "opt/gpufleet/venv", ours[2])]


def test_a_folder_that_is_empty_goes(tmp_path: Path, reset: dict[str, Any]) -> None:
    (tmp_path / "var/lib/gpufleet/runs").mkdir(parents=True)
    (tmp_path / "var/lib/gpufleet/ready.json").touch()

    reset["files"]()

    assert not (tmp_path / "var/lib/gpufleet").exists()
