"""Machines with stand-in GPUs, and the package repositories that they are fed from."""

from __future__ import annotations

import functools
import http.server
import json
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apt_repository
import installers
import nvidia_packages
from ssh_hosts import Played, Site, make_package

from infra import catalog
from infra.catalog import drivers
from infra.clouds.local import base, machine, sweep
from infra.clouds.local.site import MACHINE_USER, NodeSpec
from infra.handover import Disks, Handover, Storage
from ops import nodes

PORT = 8099
ADDRESS, GATEWAY, CIDR = "10.213.53.11", "10.213.53.1", "10.213.53.0/24"
HERE = Path(__file__).parent
UBUNTU = {
    "usr/lib/os-release": 'NAME="Ubuntu"\nID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"\nVERSION="24.04 LTS (Noble)"\n'
    "VERSION_CODENAME=noble\nUBUNTU_CODENAME=noble\n",
    "etc/lsb-release": "DISTRIB_ID=Ubuntu\nDISTRIB_RELEASE=24.04\nDISTRIB_CODENAME=noble\n",
}
HARDWARE = """[Unit]
DefaultDependencies=no
After=local-fs.target
Before=sysinit.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/python3 /usr/local/lib/standin/standin_gpu.py hardware
ExecStart=/usr/bin/python3 /usr/local/lib/standin/standin_disks.py hardware
"""


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """A model of standin_gpu.py, its name in the tables, how many of it, and the distribution that it claims to be.

    fabric: the network between such nodes. cards: the names of the fabric's own below /sys/class/infiniband. mig: the
    slices that each GPU is to be cut into. devices: what is on each disk. disks, storage: what is to be
    made and mounted.
    """

    model: str
    gpu: str
    count: int
    distribution: str
    fabric: str = "tcp"
    cards: tuple[str, ...] = ()
    mig: tuple[str, ...] = ()
    devices: dict[str, str] = field(default_factory=dict)
    disks: tuple[Disks, ...] = ()
    storage: tuple[Storage, ...] = ()


@dataclass(frozen=True)
class GpuMachine:
    """A machine, how it is played on, and the repositories that feed it."""

    site: Site
    root: Path
    repositories: Path
    keys: tuple[apt_repository.Key, ...]

    def play(self, playbook: str = "gpu_node.yml", **settings: object) -> Played:
        cuda, toolkit, _ = self.keys
        sources = {
            "nvidia_sources_cuda": f"http://{GATEWAY}:{PORT}/cuda",
            "nvidia_sources_toolkit": f"http://{GATEWAY}:{PORT}/toolkit",
            "nvidia_sources_cuda_key": cuda.fingerprint,
            "nvidia_sources_toolkit_key": toolkit.fingerprint,
            "nvidia_driver_may_reboot": True,
            "efa_source": f"http://{GATEWAY}:{PORT}/installers",
            "erdma_source": f"http://{GATEWAY}:{PORT}/installers",
            "mounts_mountpoint_source": f"http://{GATEWAY}:{PORT}/installers",
        }
        return self.site.play(playbook, **{**sources, **settings})

    def run(self, line: str, *, fails: bool = False) -> str:
        """What a command line says on the machine as root."""
        told = Handover.model_validate(self.site.handover)
        answer = nodes.run(told, told.nodes[0], f"sudo sh -c '{line}'")
        assert fails or answer.returncode == 0, f"{line}: {answer.stderr}{answer.stdout}"
        return (answer.stdout + answer.stderr).strip()

    @property
    def ready(self) -> dict[str, Any]:
        return json.loads((self.root / "var/lib/gpufleet/ready.json").read_text())

    @property
    def reasons(self) -> dict[str, str]:
        """The checks that the node failed at last, with their reasons."""
        return {check["name"]: check["detail"] for check in self.ready["checks"] if not check["ok"]}

    def breaks(self, *faults: str) -> None:
        """Gives the GPUs these faults, and takes away those that they had."""
        self._changes(faults=faults)

    def computes(self, *processes: int) -> None:
        """Lets these processes compute on the GPUs, and no others."""
        self._changes(computing=processes)

    def _changes(self, **state: object) -> None:
        file = self.root / "var/lib/standin/gpu.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **state}))


@contextmanager
def running(folder: Path, hardware: Hardware) -> Iterator[GpuMachine]:
    """One booted machine with its GPUs, and nothing of it afterwards."""
    environment = Path(sys.executable).parents[1]
    ground = {"cidr": CIDR, "gateway": GATEWAY, "base": base.name(), "environment": str(environment)}
    site = folder / "site"
    site.mkdir()
    spec = NodeSpec(site=site, name="gpu-1", address=ADDRESS, port=22, public_keys=(), storage={}, machine=ground)
    keys = tuple(apt_repository.Key(name) for name in ("cuda", "toolkit", "archive"))
    repositories = folder / "repositories"
    fill(repositories, hardware.distribution, keys)
    installer = fabric_installer(repositories / "installers", hardware.fabric)
    try:
        machine.create(spec)
        with served(repositories):
            root = spec.folder / "disk" / "root"
            furnish(root, hardware, keys[2])
            handed = Site(folder, (), handover(spec, hardware, installer), make_package(folder / "training"))
            found = GpuMachine(handed, root, repositories, keys)
            found.run("systemctl daemon-reload && systemctl start standin-hardware")
            yield found
    finally:
        sweep.remove(site)
        for key in keys:
            key.close()


def fill(folder: Path, distribution: str, keys: tuple[apt_repository.Key, ...]) -> None:
    cuda, toolkit, archive = keys
    place = folder / "cuda" / distribution / "x86_64"
    apt_repository.write(place, nvidia_packages.cuda(distribution), cuda, "NVIDIA")
    (place / ("8793F200.pub" if distribution == "debian13" else "3bf863cc.pub")).write_bytes(cuda.public)
    apt_repository.write(folder / "toolkit/stable/deb/amd64", nvidia_packages.toolkit(), toolkit, "NVIDIA")
    (folder / "toolkit/gpgkey").write_bytes(toolkit.public)
    apt_repository.write(folder / "archive", nvidia_packages.archive(), archive, "Debian")


def fabric_installer(folder: Path, fabric: str) -> dict[str, str]:
    """The locked installer of a fabric, with a stand-in in its place."""
    row = drivers.load().fabric(fabric)
    if row is None or fabric not in installers.ARCHIVES:
        return row.told() if row else {}
    return {**row.told(), "sha256": installers.write(folder, fabric, row.installer)}


@contextmanager
def served(folder: Path) -> Iterator[None]:
    """The folder over HTTP, to the machines on the bridge."""
    handler = functools.partial(Quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer((GATEWAY, PORT), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


def furnish(root: Path, hardware: Hardware, archive: apt_repository.Key) -> None:
    """The stand-ins, the distribution's archive, and the name that the distribution goes by."""
    files = {
        "usr/local/lib/standin/standin_gpu.py": (HERE / "standin_gpu.py").read_text(),
        "usr/local/lib/standin/standin_disks.py": (HERE / "standin_disks.py").read_text(),
        "usr/local/sbin/blkid": nvidia_packages.program("blkid", "standin_disks"),
        "usr/local/sbin/mount": nvidia_packages.program("mount", "standin_disks"),
        "var/lib/standin/disks.json": json.dumps(hardware.devices),
        "usr/local/lib/standin/standin_mig.py": (HERE / "standin_mig.py").read_text(),
        "usr/local/sbin/modinfo": nvidia_packages.program("modinfo"),
        "var/lib/standin/gpu.json": json.dumps(
            {"model": hardware.model, "count": hardware.count, "cards": hardware.cards}
        ),
        "etc/systemd/system/standin-hardware.service": HARDWARE,
        "usr/share/keyrings/archive.asc": archive.public.decode(),
        "etc/apt/sources.list.d/archive.sources": f"Types: deb\nURIs: http://{GATEWAY}:{PORT}/archive/\nSuites: /\n"
        "Signed-By: /usr/share/keyrings/archive.asc\n",
        **(UBUNTU if hardware.distribution == "ubuntu2404" else {}),
    }
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    for tool in (root / "usr/local/sbin").iterdir():
        tool.chmod(0o755)
    for storage in hardware.storage:
        (root / "var/lib/standin/content" / storage.source).mkdir(parents=True)
    wants = root / "etc/systemd/system/sysinit.target.wants"
    wants.mkdir(exist_ok=True)
    (wants / "standin-hardware.service").symlink_to("../standin-hardware.service")


def handover(spec: NodeSpec, hardware: Hardware, installer: dict[str, str]) -> dict[str, Any]:
    gpu = catalog.load().gpu(hardware.gpu)
    locks = drivers.load().by_distribution(gpu)
    group = {"name": "gpu", "count": 1, "gpu": gpu.name, "gpus_per_node": hardware.count}
    fabric = {
        "fabric": hardware.fabric,
        "fabric_devices": len(hardware.cards),
        "fabric_installer": installer,
        "mig": hardware.mig,
        "disks": [disks.model_dump(mode="json") for disks in hardware.disks],
    }
    told = {distribution: row.told() for distribution, row in locks.items()}
    node = {"name": spec.name, "group": "gpu", "address": ADDRESS, "port": 22, "host_key": spec.host_key, "prefix": "/"}
    keys = {"key_file": str(spec.site / "key"), "known_hosts_file": str(spec.site / "known_hosts")}
    return {
        "version": 1,
        "stack": "gpus",
        "cloud": "local",
        "region": None,
        "access": {"user": MACHINE_USER, **keys},
        "nodes": [node],
        "groups": [{**group, **fabric, "drivers": told}],
        "storage": [storage.model_dump(mode="json") for storage in hardware.storage],
        "store": {"host": "control", "address": GATEWAY},
        "environment": {"python": sys.executable, "shared": True},
    }


def lacking(folder: Path) -> str | None:
    """Why there can be no such machine on this computer."""
    problems = machine.problems(folder, 1)
    if not problems and not shutil.which("gpg"):
        return "gpg is missing: install the package gpg"
    return problems[0] if problems else None
