"""Whether a node must be started anew for its driver, by what is on its disk and in its kernel."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

STATE = Path(__file__).parents[3] / "playbooks/roles/nvidia_driver/files/state.py"
VERSION, KERNEL = "580.178.04", "6.1.0"
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.178.04  Release Build\n"
CLOSED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.178.04  Release Build\n"


class Node:
    """A node whose files lie below a folder, with the locked driver on its disk."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("bin/modinfo", f"#!/bin/sh\necho {VERSION}\n")
        self.write("bin/nvidia-smi", "#!/bin/sh\nexit 9\n")
        self.write("run/systemd", "")

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)

    def loads(self, text: str) -> None:
        self.write("proc/driver/nvidia/version", text)

    def options(self, *lines: str) -> None:
        self.write("etc/modprobe.d/gpufleet-nvidia.conf", "\n".join(["blacklist nouveau", *lines, ""]))

    def reboots(self) -> None:
        (self.root / "run/gpufleet-nvidia.conf").unlink()

    def restart(self, purpose: str = "load", flavour: str = "open") -> str:
        source = STATE.read_text().replace('Path("/', f'Path("{self.root}/')
        command = [sys.executable, "-c", source, purpose, VERSION, flavour, KERNEL]
        ran = subprocess.run(command, env={"PATH": f"{self.root}/bin"}, capture_output=True, text=True, check=True)
        return json.loads(ran.stdout)["restart"]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_a_driver_that_runs_as_it_is_to_needs_no_restart(node: Node) -> None:
    node.loads(OPEN)
    node.options("options nvidia NVreg_EnableGpuFirmware=0")

    assert [node.restart(), node.restart()] == ["", ""]


def test_another_version_in_the_kernel_needs_one(node: Node) -> None:
    node.loads(OPEN.replace(VERSION, "595.91.07"))

    assert node.restart() == f"595.91.07 is loaded and {VERSION} installed"


def test_nouveau_at_the_gpus_needs_one(node: Node) -> None:
    (node.root / "sys/bus/pci/drivers/nouveau/0000:10:00.0").mkdir(parents=True)

    assert node.restart() == "nouveau drives the GPUs"


def test_nouveau_without_a_gpu_needs_none(node: Node) -> None:
    (node.root / "sys/bus/pci/drivers/nouveau/module").mkdir(parents=True)

    assert node.restart() == ""


@pytest.mark.parametrize(("text", "flavour"), [(OPEN, "proprietary"), (CLOSED, "open")])
def test_another_flavour_in_the_kernel_needs_one(node: Node, text: str, flavour: str) -> None:
    node.loads(text)

    assert node.restart(flavour=flavour) == f"another flavour than {flavour} is loaded"


def test_other_options_need_one_until_the_node_has_restarted(node: Node) -> None:
    node.loads(OPEN)
    node.options("options nvidia NVreg_EnableGpuFirmware=0")
    node.restart("look")
    node.options()  # a default that the kernel shows nowhere

    assert {node.restart("look"), node.restart(), node.restart()} == {"its options are others than it was loaded with"}
    node.reboots()
    assert node.restart() == ""


def test_options_that_were_written_before_the_first_load_need_none(node: Node) -> None:
    node.restart("look")
    node.options("options nvidia NVreg_EnableGpuFirmware=0")
    node.loads(OPEN)

    assert node.restart() == ""


def test_a_driver_that_was_there_before_the_first_run_needs_one_only_for_options(node: Node) -> None:
    node.loads(OPEN)
    node.restart("look")
    node.options()

    assert node.restart() == ""
