"""Who counts as busy on a node's GPUs, told by nvidia-smi or, where it fails, by who has a GPU open."""

from __future__ import annotations

import json
import runpy
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROLES = Path(__file__).parents[3] / "playbooks/roles"
LOOK, DRAIN = ROLES / "gpu_facts/files/probe_gpus.py", ROLES / "drain/files/drain.py"
START = ROLES / "verify/files/start.py"
JOB, NO_GPU = 9_000_005, 9_000_006  # above every real process: none can be hit by a signal
OPEN = {
    9_000_001: ("nvidia-persiste", "/dev/nvidia0"),
    9_000_002: ("nv-hostengine", "/dev/nvidia0"),
    9_000_003: ("dcgm-exporter", "/dev/nvidia0"),
    9_000_004: ("nv-fabricmanage", "/dev/nvidia0"),
    JOB: ("python", "/dev/nvidia1"),
    NO_GPU: ("python", "/dev/nvidiactl"),
}


class Node:
    """A node whose /proc is a folder, and whose nvidia-smi says and ends as told."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.source = root, LOOK.read_text().replace('Path("/proc")', f'Path("{root}/proc")')
        (root / "probe_gpus.py").write_text(self.source)
        monkeypatch.setenv("PATH", str(root))
        for pid, (name, device) in OPEN.items():
            (root / f"proc/{pid}/fd").mkdir(parents=True)
            (root / f"proc/{pid}/comm").write_text(f"{name}\n")
            (root / f"proc/{pid}/fd/7").symlink_to(device)
        (root / "proc/driver/nvidia").mkdir(parents=True)
        (root / "proc/driver/nvidia/version").touch()

    def smi(self, said: str, code: int) -> None:
        (self.root / "nvidia-smi").write_text(f"#!/bin/sh\necho '{said}'\nexit {code}\n")
        (self.root / "nvidia-smi").chmod(0o755)

    @property
    def busy(self) -> list[int]:
        names: dict[str, Any] = runpy.run_path(str(self.root / "probe_gpus.py"))
        return names["busy"]()


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    return Node(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("Failed to initialize NVML: Driver/library version mismatch", 18),
        ("Unable to determine the device handle for GPU0000:0F:00.0: GPU is lost", 15),
    ],
)
def test_a_job_keeps_its_node_busy_while_nvidia_smi_fails(node: Node, said: str, code: int) -> None:
    node.smi(said, code)

    assert node.busy == [JOB]


def test_a_job_keeps_its_node_busy_when_nvidia_smi_is_gone(node: Node) -> None:
    assert node.busy == [JOB]


def test_a_healthy_nvidia_smi_is_believed(node: Node) -> None:
    node.smi("12\n7", 0)

    assert node.busy == [7, 12]


def test_nobody_is_busy_where_no_driver_is_loaded(node: Node) -> None:
    node.smi("NVIDIA-SMI has failed", 9)
    (node.root / "proc/driver/nvidia/version").unlink()

    assert node.busy == []


def test_a_drain_waits_for_a_job_that_nvidia_smi_cannot_see(node: Node) -> None:
    node.smi("Failed to initialize NVML: Driver/library version mismatch", 18)
    with subprocess.Popen(["/bin/sleep", "600"]) as job:  # it ends well where nobody ends it
        (node.root / f"proc/{JOB}").rename(node.root / f"proc/{job.pid}")

        command = [sys.executable, "-c", START.read_text(), json.dumps([str(node.root / "none/ready.json"), 0])]
        program = json.dumps({"probe_gpus": node.source, "drain": DRAIN.read_text()})
        told = subprocess.run(command, input=program, capture_output=True, text=True, check=False)

        assert job.wait() == -signal.SIGTERM
    assert told.returncode == 1
    assert f"process {job.pid} still computes on a GPU after 0 s" in told.stderr
