"""Nodes as data: the files and the programs' answers that verify reads, as real tools print them, healthy or not."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from node import CheckError, Node

DRIVER, OLD = "580.178.04", "580.126.20"
LOCKED_NAMES = ["nvidia-.*", "libnvidia-.*", "nvlsm", "cuda-.*", "datacenter-gpu-manager.*"]
KERNEL_NAMES = ["linux-image-.*"]
HELD = ("nvidia-driver-cuda", "libnvidia-ml1", "datacenter-gpu-manager-4-core", "cuda-toolkit-13-0", "nvlsm")
CDI, KERNEL = "/etc/cdi/nvidia.yaml", "6.8.0-1021-aws"
FACTS, LOADED = "/etc/gpufleet/node.json", "/proc/driver/nvidia/version"
ML = "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"
REPO, AUTOMATIC = "/etc/yum.repos.d/gpufleet-nvidia.repo", "/etc/dnf/automatic.conf"
ROCKY: dict[str, Any] = {
    "files": {
        "/etc/os-release": 'ID="rocky"\nVERSION_ID="9.6"\nPLATFORM_ID="platform:el9"\n',
        REPO: f"includepkgs=*nvidia*-{DRIVER}-*,libnvsdm*-{DRIVER}-*\n",
        AUTOMATIC: "[base]\nexcludepkgs=kernel*\n",
    },
    "links": {ML: None, "/usr/lib64/libnvidia-ml.so.1": f"/usr/lib64/libnvidia-ml.so.{DRIVER}"},
    "answers": {"dpkg-query": 127, "apt-config": 127},
}
CARDS = "/sys/class/infiniband"
RETIRED = {"warning": "page retirement"}
MANIFEST = "f00d  training/__init__.py\n"
PACKAGE = f"/opt/gpufleet/training-{hashlib.sha256(MANIFEST.encode()).hexdigest()[:16]}"


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One row of nvidia-smi's queries."""

    name: str
    compute_cap: str
    persistence_mode: str = "Enabled"
    lanes: str = "16"
    ecc: str = "Enabled"
    uncorrected: str = "0"
    remapped: tuple[str, str, str] = ("0", "0", "0")
    heat: str = "Not Active"
    brake: str = "Not Active"
    fabric: tuple[str, str] = ("Completed", "Success")
    diagnosis: str = "Pass"
    slices: str = ""


@dataclass(frozen=True, kw_only=True)
class Recorded(Node):
    """A node whose files, links and answers are told beforehand.

    gpus: by number. answers: of programs, by their words joined; a number instead of a text is an exit code.
    """

    files: dict[str, str]
    links: dict[str, str]
    gpus: dict[int, Gpu]
    answers: dict[str, str | int] = field(default_factory=dict)
    mb_per_s: float = 900.0
    read_only: frozenset[str] = frozenset()

    def read(self, file: str) -> str:
        if file not in self.files:
            raise FileNotFoundError(2, "No such file or directory", file)
        return self.files[file]

    def names(self, folder: str) -> list[str]:
        paths = (*self.files, *self.links)
        return sorted({path[len(folder) + 1 :].partition("/")[0] for path in paths if path.startswith(f"{folder}/")})

    def resolved(self, path: str) -> str:
        if path not in self.links:
            raise FileNotFoundError(2, "No such file or directory", path)
        return self.links[path]

    def takes_files(self, folder: str) -> bool:
        return folder not in self.read_only

    def write_mb_per_s(self, folder: str, mb: int) -> float:
        return self.mb_per_s

    def run(
        self, *command: str, seconds: int = 0, codes: Any = (0,), folder: str | None = None, login: str | None = None
    ) -> str:
        line = " ".join(command)
        known = (answer for begin, answer in self.answers.items() if line.startswith(begin))
        answer = next(known, None)
        if answer is None:
            answer = self._smi(line) if command[0] == "nvidia-smi" else self._other(line)
        if isinstance(answer, int):
            raise CheckError(f"`{' '.join(command[:2])}`: ended without a word")
        return answer

    def _smi(self, line: str) -> str:
        columns = {
            "name": lambda gpu: gpu.name,
            "compute_cap": lambda gpu: gpu.compute_cap,
            "persistence_mode": lambda gpu: gpu.persistence_mode,
            "pcie.link.width.current": lambda gpu: gpu.lanes,
            "ecc.mode.current": lambda gpu: gpu.ecc,
            "ecc.errors.uncorrected.volatile.total": lambda gpu: gpu.uncorrected,
            "clocks_event_reasons.hw_thermal_slowdown": lambda gpu: gpu.heat,
            "clocks_event_reasons.hw_power_brake_slowdown": lambda gpu: gpu.brake,
            "remapped_rows.pending": lambda gpu: gpu.remapped[0],
            "remapped_rows.failure": lambda gpu: gpu.remapped[1],
            "remapped_rows.uncorrectable": lambda gpu: gpu.remapped[2],
        }
        if line == "nvidia-smi -L":
            return "".join(f"GPU {i}: {gpu.name} (UUID: GPU-{i})\n{gpu.slices}" for i, gpu in self.gpus.items())
        if line == "nvidia-smi -q":
            entry = "GPU 00000000:10:00.0\n    Fabric\n        State    : {}\n        Status   : {}\n"
            return "".join(entry.format(*gpu.fabric) for gpu in self.gpus.values())
        fields = line.partition("=")[2].partition(" ")[0].split(",")
        rows = ([str(i) if f == "index" else columns[f](gpu) for f in fields] for i, gpu in self.gpus.items())
        return "".join(", ".join(row) + "\n" for row in rows)

    def _other(self, line: str) -> str:
        results = [
            {
                "entity_group": "GPU",
                "entity_id": i,
                "status": gpu.diagnosis,
                "warnings": [{"warning": "page retirement"}],
            }
            for i, gpu in self.gpus.items()
        ]
        tests = [{"category": "Deployment", "tests": [{"name": "software", "results": results}]}]
        listing = "".join(f"{name} hi \n" for name in HELD) + "openssh-server ii \n"
        return {
            "modinfo -F version nvidia": f"{DRIVER}\n",
            f"modinfo -k {KERNEL} -F version nvidia": f"{DRIVER}\n",
            "nv-fabricmanager --version": f"Fabric Manager version is : {DRIVER}\n",
            "dcgmi --version": "dcgmi  version: 4.6.0\n",
            "dcgmi diag -r 1 -j": json.dumps({"DCGM Diagnostic": {"test_categories": tests}}),
            "apt-config dump Unattended-Upgrade::Package-Blacklist": "".join(
                f'"{name}";\n' for name in LOCKED_NAMES + KERNEL_NAMES
            ),
            "sha256sum --check --quiet --strict MANIFEST": "",
        }.get(line) or self._by_program(line.split(maxsplit=1)[0], listing)

    def _by_program(self, program: str, listing: str) -> str:
        said = {
            "dpkg-query": listing,
            "systemctl": "active\n",
            "/opt/env/bin/python": "python 3.12 · torch 2.15.0\n",
            "docker": "".join(f"GPU {i}: {gpu.name}\n" for i, gpu in self.gpus.items()),
        }
        return said.get(program, "")

    def but(self, **changes: Any) -> Recorded:
        """The same node with other files, links, answers or figures beside what it has; None takes a file away."""
        merged = {
            name: {k: v for k, v in {**getattr(self, name), **value}.items() if v is not None}
            if isinstance(value, dict)
            else value
            for name, value in changes.items()
        }
        return replace(self, **merged)

    def with_gpu(self, number: int, **figures: Any) -> Recorded:
        return self.but(gpus={number: replace(self.gpus[number], **figures)})


def recorded(
    gpu: Gpu, count: int, *, switches: str = "none", flavour: str = "open", release: str = "ubuntu", **changes: Any
) -> Recorded:
    """A healthy node of these GPUs."""
    version = {"ubuntu": "24.04", "debian": "12"}[release]
    facts = {"cluster": {"stack": "trial"}, "node": {"name": "gpu-1"}, "gpus": {"switches": switches}}
    kind = "Open Kernel Module for x86_64" if flavour == "open" else "x86_64 Kernel Module"
    devices = "".join(f"  - name: '{i}'\n" for i in range(count))
    files = {
        FACTS: json.dumps(facts),
        "/etc/os-release": f'ID={release}\nVERSION_ID="{version}"\n',
        LOADED: f"NVRM version: NVIDIA UNIX {kind}  {DRIVER}  Release Build\n",
        CDI: f"kind: nvidia.com/gpu\ndevices:\n{devices}  - name: all\n  - hostPath: /usr/lib/libcuda.so.{DRIVER}\n",
        "/proc/self/mountinfo": "36 25 259:0 / /scratch rw,noatime - xfs /dev/md0 rw\n",
        f"{PACKAGE}/MANIFEST": MANIFEST,
        f"/boot/vmlinuz-{KERNEL}": "",
        "/boot/vmlinuz-6.8.0-999-aws": "",  # older than 1021, though not in the order of the alphabet
    }
    links = {"/opt/gpufleet/current": PACKAGE, ML: f"/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.{DRIVER}"}
    rows = dict.fromkeys(range(count), gpu)
    return Recorded(files=files, links=links, gpus=rows).but(**changes)


def cards(driver: str, count: int, state: str = "4: ACTIVE") -> dict[str, Any]:
    """The files and links of a fabric's cards."""
    names = [f"{driver}_{i}" for i in range(count)]
    return {
        "files": {f"{CARDS}/{name}/ports/1/state": f"{state}\n" for name in names},
        "links": {f"{CARDS}/{name}/device/driver": f"/sys/bus/pci/drivers/{driver}" for name in names},
    }


def on(fabric: str, devices: int = 0, hcas: Sequence[str] = ()) -> dict[str, Any]:
    """What is expected of a node on this fabric: so many cards, or those of these names."""
    return {"fabric": {"name": fabric, "devices": devices, "hcas": list(hcas)}}


def expected(of: Recorded, /, **changes: Any) -> dict[str, Any]:
    """What verify is told to expect of such a node."""
    flavour = "open" if "Open" in of.files.get(LOADED, "Open") else "proprietary"
    lock = {"driver": DRIVER, "flavour": flavour, "dcgm": "4.6.0"}
    return {
        "facts": FACTS,
        "stack": "trial",
        "node": {"name": "gpu-1"},
        "package": "/opt/gpufleet/current",
        "python": "/opt/env/bin/python",
        "login": "ops",
        "storage": ["/data"],
        "mounts": ["/scratch"],
        "mig": [],
        "disks": {"/var/lib/gpufleet": 50},
        "gpus": len(of.gpus),
        **on("none"),
        "drivers": {"ubuntu2404": lock, "debian12": lock, "rhel9": lock},
        "locked_names": LOCKED_NAMES,
        "kernel_names": KERNEL_NAMES,
        "engine": "docker",
        "image": "",
        "all_reduce": {},
        "all_reduce_gb_per_s": 0,
        **changes,
    }
