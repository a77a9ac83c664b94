"""verify's checks over recorded nodes: every planted fault is found for its reason, no healthy node is accused."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from typing import Any

import checks
import pytest
from node import CheckError
from recorded_node import (
    AUTOMATIC,
    CARDS,
    CDI,
    DRIVER,
    FACTS,
    KERNEL,
    LOADED,
    LOCKED_NAMES,
    ML,
    OLD,
    PACKAGE,
    REPO,
    ROCKY,
    Gpu,
    Recorded,
    cards,
    expected,
    on,
    recorded,
)

A100 = Gpu(name="NVIDIA A100-SXM4-80GB", compute_cap="8.0", fabric=("N/A", "N/A"))
H100 = Gpu(name="NVIDIA H100 80GB HBM3", compute_cap="9.0")
V100 = Gpu(name="Tesla V100-SXM2-32GB", compute_cap="7.0", remapped=("[N/A]", "[N/A]", "[N/A]"), fabric=("N/A", "N/A"))
T4 = Gpu(name="Tesla T4", compute_cap="7.5", remapped=("[N/A]", "[N/A]", "[N/A]"), lanes="8", fabric=("N/A", "N/A"))
A10G = Gpu(name="NVIDIA A10G", compute_cap="8.6", uncorrected="0", fabric=("N/A", "N/A"))
B200 = Gpu(name="NVIDIA B200", compute_cap="10.0")
SLICE = "  MIG 3g.20gb     Device  {}: (UUID: MIG-1-2)\n"
IMAGE = {"image": "cuda:13"}
EFA4 = on("efa", 4)
MANAGEMENT: dict[str, Any] = {
    "files": {f"{CARDS}/mlx5_0/device/vpd": "ConnectX-7 SW_MNG"},
    "links": {f"{CARDS}/mlx5_0/device/driver": "/sys/bus/pci/drivers/mlx5_core"},
}
MEASURED = {"ranks": 16, "gb_per_s": 78.3, "moved_mb": 11000.0, "must_move_mb": 10240.0, "over": "efa"}

P4D = recorded(A100, 8, switches="nvswitch", **cards("efa", 4))
ON_ROCKY = P4D.but(**ROCKY)
P5 = recorded(H100, 8, switches="nvswitch", **cards("efa", 32))
HALF = P4D.with_gpu(0, slices=SLICE.format(0) + SLICE.format(1)).with_gpu(1, slices=SLICE.format(0))
HEAD = recorded(A100, 0, files={LOADED: None, CDI: None})
DRIVERS_ALONE = "".join(f'"{name}";\n' for name in LOCKED_NAMES)
SIX_XIDS = "NVRM: Xid (PCI:0000:10:00): 13, pid=1, name=python, Graphics Exception\nNVRM: Xid (PCI:0000:10:00): 94, x\n"

HEALTHY: dict[str, tuple[Recorded, dict[str, Any]]] = {
    "cut into slices": (recorded(replace(A100, slices=SLICE.format(0)), 2), {"mig": ["3g.20gb"]}),
    "a100 with EFA": (P4D, EFA4),
    "h100 with EFA": (P5, on("efa", 32)),
    "b200 with NVLink 5": (recorded(B200, 8, switches="nvlink5", **MANAGEMENT), {}),
    "v100, proprietary": (recorded(V100, 8, flavour="proprietary"), {}),
    "one T4 with half its lanes": (recorded(T4, 1, release="debian"), {}),
    "four A10G": (recorded(A10G, 4), {}),
    "eRDMA": (recorded(A10G, 8, **cards("erdma", 2)), on("erdma")),
    "InfiniBand beside the switches' own card": (
        recorded(B200, 8, switches="nvlink5", **cards("mlx5_core", 8)).but(**MANAGEMENT),
        on("infiniband", 8),
    ),
    "InfiniBand beside a port that nobody uses": (
        recorded(H100, 8, **cards("mlx5_core", 3)).but(files={f"{CARDS}/mlx5_core_1/ports/1/state": "1: DOWN"}),
        on("infiniband", hcas=["mlx5_core_0", "mlx5_core_2"]),
    ),
    "RoCE": (recorded(H100, 8, **cards("mlx5_core", 2)), on("roce")),
    "MIG": (recorded(H100, 1, files={CDI: f"  - name: '0:0'\n  - name: '0:1'\n  - libcuda.so.{DRIVER}\n"}), {}),
    "a container's kernel": (P4D.but(files={f"/boot/vmlinuz-{k}": None for k in (KERNEL, "6.8.0-999-aws")}), EFA4),
    "errors of programs": (P4D.but(answers={"journalctl": SIX_XIDS}), EFA4),
    "rows replaced long ago": (P4D.with_gpu(3, remapped=("0", "0", "7")), EFA4),
    "an all-reduce over the fabric": (P4D, {**EFA4, "all_reduce": MEASURED, "all_reduce_gb_per_s": 60}),
    "a container that sees all": (P4D, {**EFA4, **IMAGE}),
    "Rocky Linux": (ON_ROCKY, EFA4),
    "Rocky Linux without dnf-automatic": (ON_ROCKY.but(files={AUTOMATIC: None}), EFA4),
    "a head without GPUs": (HEAD, {"gpus": 0, "disks": {}}),
}


def xid(number: int, text: str = "x") -> dict[str, Any]:
    return {"answers": {"journalctl": f"NVRM: Xid (PCI:0000:9b:00): {number}, pid=1, name=a, {text}\n"}}


def inactive(unit: str) -> dict[str, Any]:
    return {"answers": {f"systemctl is-active {unit}": "failed\n"}}


def smi_says(line: str) -> dict[str, Any]:
    return {"answers": {"nvidia-smi --query-gpu": line}}


def loose(name: str) -> dict[str, Any]:
    return {"answers": {"dpkg-query": f"nvlsm hi \n{name} ii \n"}}


SLOW = {**MEASURED, "gb_per_s": 19.6}
CLOSED = {"driver": DRIVER, "flavour": "proprietary", "dcgm": "4.6.0"}
NEXT = "/boot/vmlinuz-6.11.0-9-aws"
UNNAMED = f"  - name: '0'\n  - name: '1'\n  libcuda.so.{DRIVER}\n"
FAULTS: list[tuple[str, str, Recorded, dict[str, Any]]] = [
    ("facts", "speaks of another node: run gpu_node.yml", P4D, {"node": {"name": "gpu-9"}}),
    ("facts", f"{FACTS}: No such file", P4D.but(files={FACTS: None}), {}),
    ("environment", "`/opt/env/bin/python -c`", P4D.but(answers={"/opt/env/bin/python": 1}), {}),
    ("package", "is not what its name says", P4D.but(files={f"{PACKAGE}/MANIFEST": "other\n"}), {}),
    ("package", "training/loop.py: FAILED", P4D.but(answers={"sha256sum": "training/loop.py: FAILED\n"}), {}),
    ("storage", "/data is missing or takes no files", P4D.but(read_only=frozenset({"/data"})), {}),
    ("mounts", "/data not mounted", P4D, {"mounts": ["/scratch", "/data"]}),
    ("slices", "GPU 0 has slices none, not 3g.20gb, 3g.20gb", P4D, {"mig": ["3g.20gb", "3g.20gb"]}),
    ("slices", "GPU 1 has slices 3g.20gb, not 3g.20gb, 3g.20gb", HALF, {"mig": ["3g.20gb", "3g.20gb"]}),
    ("slices", "GPU 0 has slices 3g.20gb, 3g.20gb, not none", HALF, {}),
    ("disk", "takes 12 MB/s, at least 50 are asked", P4D.but(mb_per_s=12.0), {}),
    ("rdma", "3 of 4 efa cards are there", recorded(A100, 8, switches="nvswitch", **cards("efa", 3)), EFA4),
    ("rdma", "0 of 4 efa cards", recorded(A100, 8, switches="nvswitch", **cards("mlx5_core", 4)), EFA4),
    ("rdma", "efa_0 is DOWN", P4D.but(**cards("efa", 1, "1: DOWN")), EFA4),
    ("rdma", "0 of at least 1 erdma", P4D, on("erdma")),
    ("rdma", "0 of at least 1 roce", P4D, on("roce")),
    ("rdma", "0 of 2 infiniband cards", P4D, on("infiniband", hcas=["mlx5_0", "mlx5_1"])),
    ("all_reduce", "0 of at least 10240 MB went over efa", P4D, {"all_reduce": {**MEASURED, "moved_mb": 0.4}}),
    ("all_reduce", "19.60 GB/s, at least 60", P4D, {"all_reduce": SLOW, "all_reduce_gb_per_s": 60}),
    ("all_reduce", "timed out", P4D, {"all_reduce": {"fault": "DistNetworkError: timed out"}}),
    ("versions", f"library {OLD}", P4D.but(links={ML: f"/usr/lib/libnvidia-ml.so.{OLD}"}), {}),
    ("versions", "library none", P4D.but(links={ML: None}), {}),
    ("versions", f"on disk {OLD}", P4D.but(answers={"modinfo -F": f"{OLD}\n"}), {}),
    ("versions", f"fabric manager {OLD}", P4D.but(answers={"nv-fabricmanager": f"version is : {OLD}"}), {}),
    ("versions", f"loaded {OLD}", P4D.but(files={LOADED: P4D.files[LOADED].replace(DRIVER, OLD)}), {}),
    ("versions", "loaded none", P4D.but(files={LOADED: None}), {}),
    ("versions", "not the proprietary one", P4D, {"drivers": {"ubuntu2404": CLOSED}}),
    ("versions", "no locked driver on ubuntu2404", P4D, {"drivers": {}}),
    ("kernel", "the next boot takes 6.11.0-9-aws, whose driver is none", P4D.but(files={NEXT: ""}), {}),
    ("kernel", f"whose driver is {OLD}", P4D.but(answers={f"modinfo -k {KERNEL}": f"{OLD}\n"}), {}),
    ("gpus", "7 of 8 GPUs answer, not number 3: reboot", P4D.but(gpus={3: None}), {"gpus": 8}),
    ("gpus", "GPU 5 has no persistence mode", P4D.with_gpu(5, persistence_mode="Disabled"), {}),
    ("gpus", "GPU 2 is a Tesla T4, the others are NVIDIA A100", P4D.with_gpu(2, name="Tesla T4"), {}),
    ("gpus", "GPU 6 has 4 PCIe lanes, the others 16", P4D.with_gpu(6, lanes="4"), {}),
    ("gpus", "`nvidia-smi --query-gpu", P4D.but(answers={"nvidia-smi --query-gpu=index,name": 18}), {}),
    ("gpus", "ValueError", P4D.but(**smi_says("Unable to determine the device handle\n" * 8)), {}),
    ("gpu_memory", "GPU 1 has 3 uncorrected memory errors", P4D.with_gpu(1, uncorrected="3"), {}),
    ("gpu_memory", "GPU 4 does not correct memory errors", P4D.with_gpu(4, ecc="Disabled"), {}),
    ("gpu_memory", "GPU 0 waits for a reset to replace rows", P4D.with_gpu(0, remapped=("1", "0", "1")), {}),
    ("gpu_memory", "GPU 7 has no spare rows left", P4D.with_gpu(7, remapped=("0", "1", "9")), {}),
    ("gpu_memory", "GPU 2 has no spare rows left", P4D.with_gpu(2, remapped=("0", "0", "513")), {}),
    ("clocks", "GPU 3 is slowed down because of heat", P4D.with_gpu(3, heat="Active"), {}),
    ("clocks", "GPU 0 is slowed down because of its power supply", P4D.with_gpu(0, brake="Active"), {}),
    ("xids", "Xid 79: reboot the node", P4D.but(**xid(79)), {}),
    ("xids", "Xid 119: reboot the node", P4D.but(**xid(119)), {}),
    ("xids", "Xid 54: replace the node", P4D.but(**xid(54)), {}),
    ("xids", "Xid 154: reboot the node", P4D.but(**xid(154, "0x1 GPU Reset Required")), {}),
    (
        "xids",
        "0000:18:00.0 has fallen off the bus",
        P4D.but(answers={"journalctl": "NVRM: GPU 0000:18:00.0: GPU has fallen off the bus.\n"}),
        {},
    ),
    ("fabric", "GPU 0 says In Progress, N/A", P5.with_gpu(0, fabric=("In Progress", "N/A")), {}),
    ("fabric", "nvidia-fabricmanager is failed", P4D.but(**inactive("nvidia-fabricmanager")), {}),
    ("packages", "nvidia-driver-cuda not held", P4D.but(**loose("nvidia-driver-cuda")), {}),
    ("packages", "unattended upgrades may change nvidia-.*", P4D.but(answers={"apt-config": '"nvlsm";'}), {}),
    ("packages", "unattended upgrades may change linux-image-.*", P4D.but(answers={"apt-config": DRIVERS_ALONE}), {}),
    ("packages", "leaves dnf other drivers than", ON_ROCKY.but(files={REPO: f"*nvidia*-{OLD}-*\n"}), {}),
    ("packages", f"{REPO}: No such file", ON_ROCKY.but(files={REPO: None}), {}),
    ("packages", "dnf-automatic may install another kernel", ON_ROCKY.but(files={AUTOMATIC: "[base]\n"}), {}),
    ("dcgm", "dcgmi is 3.3.9, the lock says 4.6.0", P4D.but(answers={"dcgmi --version": "version: 3.3.9"}), {}),
    ("dcgm", "software on GPU 5: page retirement", P4D.with_gpu(5, diagnosis="Fail"), {}),
    ("dcgm", "nvidia-dcgm-exporter is failed", P4D.but(**inactive("nvidia-dcgm-exporter")), {}),
    ("containers", "docker is failed", P4D.but(**inactive("docker")), {}),
    ("containers", f"another driver than {DRIVER}", P4D.but(files={CDI: f"libcuda.so.{OLD}"}), {}),
    ("containers", "does not name GPU 2, 3, 4, 5, 6, 7", P4D.but(files={CDI: UNNAMED}), {}),
    ("containers", "counts in place of", P4D.but(files={"/var/run/cdi/nvidia.yaml": P4D.files[CDI]}), {}),
    ("containers", "a container of cuda:13 sees 1 of 8", P4D.but(answers={"docker run": "GPU 0: A\n"}), IMAGE),
]  # fmt: skip


def failed(node: Recorded, asked: dict[str, Any]) -> dict[str, str]:
    """The checks that failed, with their reasons."""
    report = checks.checked(node, expected(node, **asked))
    assert report["ready"] == all(check["ok"] for check in report["checks"])
    return {check["name"]: check["detail"] for check in report["checks"] if not check["ok"]}


@pytest.mark.parametrize("variant", HEALTHY)
def test_a_healthy_node_is_accused_of_nothing(variant: str) -> None:
    assert failed(*HEALTHY[variant]) == {}


@pytest.mark.parametrize(("check", "reason", "node", "asked"), FAULTS, ids=[f"{f[0]}: {f[1]}"[:60] for f in FAULTS])
def test_a_fault_is_found_with_its_reason(check: str, reason: str, node: Recorded, asked: dict[str, Any]) -> None:
    assert reason in failed(node, asked).get(check, "found nothing")


def test_gpus_are_seen_in_containers_of_a_docker_that_knows_no_cdi() -> None:
    class Docker20(Recorded):
        def run(self, *command: str, **limits: Any) -> str:
            if command[0] == "docker" and any(word.startswith("--device=nvidia.com/") for word in command):
                raise CheckError("error gathering device information while adding custom device")
            return super().run(*command, **limits)

    old = Docker20(files=P4D.files, links=P4D.links, gpus=P4D.gpus)

    assert failed(old, {**EFA4, **IMAGE}) == {}


def test_a_check_that_hangs_is_a_reason_and_hinders_no_other() -> None:
    class Hanging(Recorded):
        def run(self, *command: str, **limits: Any) -> str:
            if command[0] == "nvidia-smi":
                raise subprocess.TimeoutExpired(list(command), 120)
            return super().run(*command, **limits)

    hanging = Hanging(files=P4D.files, links=P4D.links, gpus=P4D.gpus)

    reasons = failed(hanging, {})

    assert set(reasons) == {"gpus", "slices", "gpu_memory", "clocks", "fabric"}
    assert all("timed out after 120 seconds" in reason for reason in reasons.values())
