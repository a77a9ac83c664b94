"""verify.yml on a configured node with eight A100s: every planted fault is found, with its reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from gpu_machines import Boot, GpuMachine, Hardware

pytestmark = pytest.mark.drill

A100 = Hardware(model="a100", gpu="A100-SXM4-80GB", count=8, distribution="debian12")
DRIVER, OLD = "580.178.04", "580.126.20"
ML = "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so"
LOADED, CDI, BLACKLIST = "/proc/driver/nvidia/version", "/etc/cdi/nvidia.yaml", "/etc/apt/apt.conf.d/52gpufleet-nvidia"


@dataclass(frozen=True)
class Fault:
    """A fault, planted by commands or in the GPUs, and the check that must fail with these words."""

    check: str
    reason: str
    breaks: str = ":"
    mends: str = ":"
    gpu: str = ""


def swapped(check: str, reason: str, file: str, right: str, wrong: str) -> Fault:
    """A fault that is another text in a file."""
    return Fault(check, reason, f'sed -i "s/{right}/{wrong}/" {file}', f'sed -i "s/{wrong}/{right}/" {file}')


def moved(check: str, reason: str, file: str) -> Fault:
    """A fault that is a missing file."""
    return Fault(check, reason, f"mv {file} {file}.aside", f"mv {file}.aside {file}")


def stopped(check: str, unit: str) -> Fault:
    return Fault(check, f"{unit} is inactive", f"systemctl stop {unit}", f"systemctl start {unit}")


def loose(name: str) -> Fault:
    return Fault("packages", f"{name} not held", f"apt-mark unhold {name}", f"apt-mark hold {name}")


FAULTS = [
    Fault(
        "versions",
        f"library {OLD}",
        f"touch {ML}.{OLD} && ln -sf {ML}.{OLD} {ML}.1",
        f"rm {ML}.{OLD} && ln -sf {ML}.{DRIVER} {ML}.1",
    ),
    swapped("versions", f"loaded {OLD}", LOADED, DRIVER, OLD),
    swapped("versions", "is not the open one", LOADED, "Open Kernel Module for x86_64", "x86_64 Kernel Module"),
    moved("versions", "on disk none", "/var/lib/standin/dkms"),
    moved("versions", "loaded none", LOADED),
    swapped("versions", f"fabric manager {OLD}", "/usr/share/standin/fabricmanager", DRIVER, OLD),
    swapped("gpus", "Driver/library version mismatch", "/run/standin/loaded", DRIVER, OLD),
    swapped("gpus", "No devices were found", "/run/standin/loaded", "open", "none"),
    *(Fault("gpus", f"7 of 8 GPUs answer, not number {i}", gpu=f"lost:{i}") for i in (0, 3, 7)),
    *(Fault("gpus", f"GPU {i} has no persistence mode", gpu=f"persistence_mode:{i}") for i in (0, 5)),
    Fault("gpus", "GPU 6 has 4 PCIe lanes, the others 16", gpu="pcie.link.width.current:6"),
    Fault("gpu_memory", "GPU 4 does not correct memory errors", gpu="ecc.mode.current:4"),
    Fault("clocks", "GPU 3 is slowed down because of heat", gpu="clocks_event_reasons.hw_thermal_slowdown:3"),
    Fault("gpu_memory", "GPU 1 has 3 uncorrected", gpu="ecc.errors.uncorrected.volatile.total:1"),
    Fault("gpu_memory", "GPU 6 has 3 uncorrected", gpu="ecc.errors.uncorrected.volatile.total:6"),
    *(Fault("gpu_memory", f"GPU {i} waits for a reset", gpu=f"remapped_rows.pending:{i}") for i in (0, 4)),
    *(Fault("gpu_memory", f"GPU {i} has no spare rows", gpu=f"remapped_rows.failure:{i}") for i in (2, 7)),
    *(Fault("dcgm", f"software on GPU {i}: Detected page retirement failure", gpu=f"dcgm:{i}") for i in (0, 7)),
    swapped("dcgm", "dcgmi is 3.3.9, the lock says 4.6.0", "/usr/share/standin/dcgm", "4.6.0", "3.3.9"),
    stopped("dcgm", "nvidia-dcgm"),
    stopped("dcgm", "nvidia-dcgm-exporter"),
    stopped("fabric", "nvidia-fabricmanager"),
    stopped("containers", "docker"),
    moved("containers", "nvidia.yaml: No such file", CDI),
    swapped("containers", f"libraries of another driver than {DRIVER}", CDI, DRIVER, OLD),
    loose("nvidia-driver-cuda"),
    loose("libnvidia-nscq"),
    loose("datacenter-gpu-manager-4-core"),
    loose("cuda-toolkit-13-0"),
    loose("libnvidia-container1"),
    swapped("packages", "unattended upgrades may change nvlsm", BLACKLIST, "nvlsm", "other"),
    swapped("packages", "unattended upgrades may change linux-image-.*", BLACKLIST, "linux-image", "other-image"),
    swapped("facts", "speaks of another node", "/etc/gpufleet/node.json", "gpu-1", "gpu-9"),
]


@pytest.fixture(scope="module")
def node(boot: Boot) -> Iterator[GpuMachine]:
    with boot(A100) as (found,):
        played = found.play()
        assert played.code == 0, played.output
        yield found


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.check}-{fault.reason}"[:60])
def test_a_planted_fault_is_found_with_its_reason(node: GpuMachine, fault: Fault) -> None:
    node.run(fault.breaks)
    node.breaks(*filter(None, [fault.gpu]))
    try:
        played = node.play("verify.yml")
        found = node.reasons
    finally:
        node.run(fault.mends)
        node.breaks()

    assert played.code != 0
    assert fault.reason in found.get(fault.check, f"{fault.check} found nothing; others: {found}")


def test_the_mended_node_is_ready_again(node: GpuMachine) -> None:
    assert node.play("verify.yml").code == 0
    assert node.reasons == {}
