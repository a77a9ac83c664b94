"""A node that makes its own environments: exactly what their locks name, by its checksum, and nothing twice."""

from __future__ import annotations

import hashlib
import subprocess
import zipfile
from pathlib import Path

import pytest
from ssh_hosts import Played, Site

pytestmark = pytest.mark.drill


def lock(folder: Path, name: str) -> Path:
    """A lock that names one package, which is all but empty."""
    wheel, about = folder / f"{name}-1.0-py3-none-any.whl", f"{name}-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as parts:
        parts.writestr(f"{name}/__init__.py", "")
        parts.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        parts.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        parts.writestr(f"{about}/RECORD", "")
    file = folder / f"{name}.txt"
    file.write_text(f"{name} @ {wheel.as_uri()} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n")
    return file


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
    torch, tensorflow = lock(tmp_path, "torch"), lock(tmp_path, "tensorflow")
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
