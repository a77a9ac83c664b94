"""A node that makes its own environments: exactly what their locks name, by its checksum, and nothing twice."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from ssh_hosts import Played, Site, make_lock

pytestmark = pytest.mark.drill


def play(site: Site, torch: Path, tensorflow: Path) -> Played:
    environment = {"python": str(site.hosts[0].prefix / "opt/gpufleet/venv/bin/python"), "shared": False}
    return site.play(
        "gpu_node.yml",
        "--limit",
        "node-1",
        handover={**site.handover, "environment": environment},
        python_environment_lock=str(torch),
        python_environment_tensorflow=str(tensorflow),
        preflight_disk_gib=0.1,
    )


def test_a_node_makes_its_environments_once_and_refuses_what_is_not_as_locked(site: Site, tmp_path: Path) -> None:
    torch, tensorflow = make_lock(tmp_path, "torch"), make_lock(tmp_path, "tensorflow")
    harmed = tmp_path / "harmed.txt"
    harmed.write_text(torch.read_text().replace("sha256:", "sha256:0")[:-2])

    refused, first, second = (play(site, each, tensorflow) for each in (harmed, torch, torch))

    assert refused.code != 0
    assert "DO NOT MATCH THE HASHES" in refused.output
    assert first.code == 0, first.output
    assert (second.code, second.changed) == (0, 0), second.output
    for name, folder in (("torch", "venv"), ("tensorflow", "tensorflow")):
        python = site.hosts[0].prefix / "opt/gpufleet" / folder / "bin/python"
        assert subprocess.run([python, "-c", f"import {name}"], check=False).returncode == 0
