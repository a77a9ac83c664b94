"""A node that makes its own environments: exactly what their locks name, by its checksum, and nothing twice."""

from __future__ import annotations

import subprocess
import sys
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


HOLD = """
import mmap, sys
with open(sys.argv[1]) as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ):
    print("held", flush=True)
    input()
"""


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


def test_an_environment_is_not_changed_beneath_who_runs_from_it(site: Site, tmp_path: Path) -> None:
    torch, tensorflow, other = (make_lock(tmp_path, name) for name in ("torch", "tensorflow", "numpy"))
    more = tmp_path / "more.txt"
    more.write_text(torch.read_text() + other.read_text())
    made = play(site, torch, tensorflow)
    assert made.code == 0, made.output
    (library,) = (site.hosts[0].prefix / "opt/gpufleet/venv").glob(
        "lib/python*/site-packages/torch-1.0.dist-info/METADATA"
    )

    with subprocess.Popen([sys.executable, "-c", HOLD, library], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as job:
        assert job.stdout is not None
        job.stdout.readline()
        same, refused = (play(site, lock, tensorflow) for lock in (torch, more))
        job.communicate(b"\n")
    taken = play(site, more, tensorflow)

    assert (same.code, same.changed) == (0, 0), same.output
    assert f"busy: process {job.pid} runs from" in refused.output
    assert "and numpy must change" in refused.output
    assert taken.code == 0, taken.output
