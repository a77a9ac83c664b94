"""What people and accidents do to a node, and what of a node must be as before once it is healed."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gpu_machines import GATEWAY, PORT, GpuMachine

OLD = "580.126.20"
LOCKED_SECONDS = 15  # after somebody has asked for them
REFUSED_REQUESTS = 20  # more than apt repeats by itself
NVIDIAS = f"http://{GATEWAY}:{PORT}/compute/cuda/repos/debian12/x86_64/"
BY_HAND = "apt-get -qq -y --allow-downgrades --allow-change-held-packages -o APT::Ignore-Hold=true"
SERVICES = ("nvidia-dcgm", "nvidia-persistenced", "docker", "gpufleet-disks")
UNITS = ("usr/lib/systemd/system", "etc/systemd/system")
FOLDERS = ("etc", "usr/share/keyrings", "usr/local/lib/gpufleet")
VOLATILE = ("ld.so.cache",)  # written anew with every library
INSTALLED = re.compile(r"^Package: (\S+)\nStatus: (\w+) ok installed\n(?:.+\n)*?Version: (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Damage:
    """of: the path that it is done to: on a node without it, it cannot happen. do: does it."""

    of: str
    do: Callable[[GpuMachine], None]

    def can_hit(self, node: GpuMachine) -> bool:
        return (node.root / self.of).exists()


def has_gpus(node: GpuMachine) -> bool:
    """Whatever is left of their driver."""
    return json.loads((node.root / "var/lib/standin/gpu.json").read_text())["count"] > 0


def is_ubuntu(node: GpuMachine) -> bool:
    return (node.root / "etc/lsb-release").exists()


def revision(node: GpuMachine) -> str:
    return "ubuntu1" if is_ubuntu(node) else ""


def flavour(node: GpuMachine) -> str:
    return (node.root / "usr/share/standin/module").read_text().split()[1]


def module(node: GpuMachine, suffix: str, kind: str) -> str:
    """The package of a kernel module; Ubuntu's names end with the branch up to 580."""
    end = "-open" if kind == "open" else ""
    return f"nvidia-dkms{suffix}{end}" if is_ubuntu(node) else f"nvidia-kernel{end}-dkms"


def put(path: str, text: str, of: str = "") -> Damage:
    """Somebody gives the file this text; where the node has none of it, beside another."""

    def write(node: GpuMachine) -> None:
        (node.root / path).write_text(text)

    return Damage(of or path, write)


def does(line: str, of: str) -> Damage:
    """Somebody runs this as root."""

    def run(node: GpuMachine) -> None:
        node.run(line)

    return Damage(of, run)


def remove_package(node: GpuMachine) -> None:
    """The driver's library, or what makes disks where there is no driver."""
    gpus = "libnvidia-compute-580" if is_ubuntu(node) else "nvidia-driver-cuda"
    node.run(f"{BY_HAND} remove {gpus if has_gpus(node) else 'mdadm'}")


def install_other_version(node: GpuMachine) -> None:
    name = "nvidia-fabricmanager" if (node.root / "usr/bin/nv-fabricmanager").exists() else "nvidia-modprobe"
    node.run(f"{BY_HAND} install {name}={OLD}-1{revision(node)}")


def install_other_flavour(node: GpuMachine) -> None:
    node.run(f"{BY_HAND} install {module(node, '-580', 'open' if flavour(node) == 'proprietary' else 'proprietary')}")


def let_apt_work(node: GpuMachine) -> None:
    """The locks that apt has while dpkg works for it."""
    remove_package(node)
    locks = "/var/lib/dpkg/lock-frontend /var/lib/dpkg/lock"
    node.run(f"systemd-run --quiet python3 /usr/local/lib/standin/standin_apt.py {LOCKED_SECONDS} {locks}")


def take_repositories_down(node: GpuMachine) -> None:
    """For more requests than apt itself repeats."""
    remove_package(node)
    node.run("apt-get clean; rm -rf /var/lib/apt/lists; mkdir -p /var/lib/apt/lists/partial")
    node.server.refuses[node.address] = REFUSED_REQUESTS


def stop_services(node: GpuMachine) -> None:
    there = [name for name in SERVICES if any((node.root / place / f"{name}.service").exists() for place in UNITS)]
    node.run(f"systemctl disable --now {' '.join(there)}")


def edit_settings(node: GpuMachine) -> None:
    for path in ("etc/sysctl.d/90-gpufleet.conf", "etc/docker/daemon.json"):
        if (node.root / path).exists():
            (node.root / path).write_text("{}")


OF_PACKAGES = {
    "package-removed": Damage("", remove_package),
    "other-version-by-hand": Damage("usr/bin/nvidia-smi", install_other_version),
    "other-flavour-by-hand": Damage("usr/bin/nvidia-smi", install_other_flavour),
    "holds-lifted": does("apt-mark unhold $(apt-mark showhold)", of="usr/bin/nvidia-smi"),
    "dcgm-3-installed": does(f"{BY_HAND} install datacenter-gpu-manager=1:3.3.9-1", of="usr/bin/dcgmi"),
    "apt-lock-held": Damage("", let_apt_work),
    "repositories-down": Damage("", take_repositories_down),
}
OF_SETTINGS = {
    "services-stopped": Damage("", stop_services),
    "pin-edited": put("etc/apt/preferences.d/gpufleet-nvidia", "Package: *\nPin: version 610.*\nPin-Priority: 1001\n"),
    "blacklist-removed": does("rm /etc/apt/apt.conf.d/52gpufleet-nvidia", of="etc/apt/apt.conf.d/52gpufleet-nvidia"),
    "key-replaced": put("usr/share/keyrings/gpufleet-cuda.gpg", "no key"),
    "containers-edited": put("etc/cdi/nvidia.yaml", "cdiVersion: 0.7.0\n"),
    "settings-edited": Damage("", edit_settings),
    "foreign-source": put(
        "etc/apt/sources.list.d/cuda-debian12-x86_64.list",
        f"deb [signed-by=/usr/share/keyrings/other.gpg] {NVIDIAS} /\n",
        of="etc/apt/sources.list.d/gpufleet-nvidia.sources",
    ),
}
DAMAGES = OF_PACKAGES | OF_SETTINGS


def kept(node: GpuMachine) -> dict[str, str]:
    """What runs leave on a node and people damage: packages with their holds, settings, and services."""
    status = (node.root / "var/lib/dpkg/status").read_text()
    packages = {name: f"{version} {want}" for name, want, version in INSTALLED.findall(status)}
    files = (file for folder in FOLDERS for file in (node.root / folder).rglob("*") if file.name not in VOLATILE)
    paths = {str(file.relative_to(node.root)): content(file) for file in files if file.is_symlink() or file.is_file()}
    services = node.run(f"systemctl is-active {' '.join(SERVICES)}", fails=True).split()
    return {**packages, **paths, **dict(zip(SERVICES, services, strict=True))}


def content(file: Path) -> str:
    """A link's is where it points: to a place on the machine, not here."""
    return str(file.readlink()) if file.is_symlink() else hashlib.sha256(file.read_bytes()).hexdigest()
