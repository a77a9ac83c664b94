"""Machines with stand-in GPUs, fed from package repositories of our own."""

from __future__ import annotations

import json
import shutil
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apt_repository
import nvidia_packages
import red_hat
from repositories import fabric_installer, fill
from ssh_hosts import Played, Site, make_package

from infra import catalog
from infra.catalog import drivers
from infra.clouds.local.nodes import base, machine, sweep
from infra.clouds.local.nodes.site import MACHINE_USER, NodeSpec
from infra.handover import Disks, Handover, Storage
from ops.nodes import ssh


def own_network(sign: socket.socket) -> str:
    """A /24 that no other process of this computer that boots machines has: each holds a name that there is once."""
    for network in (f"10.213.{number}" for number in range(53, 100)):
        with suppress(OSError):
            sign.bind(f"\0gpufleet-lab-{network}")
            return network
    raise RuntimeError("all networks of the lab are taken: end a run of it")


SIGN = socket.socket(socket.AF_UNIX)  # open for as long as this process lives
NETWORK = own_network(SIGN)
PORT = 8099
GATEWAY, CIDR = f"{NETWORK}.1", f"{NETWORK}.0/24"
BOOT_AT_ONCE = 4
LINE_SECONDS = 900  # for a command line on a machine whose computer has much else to do
OUTPUT_BYTES = 64 << 20  # of a command line: some print what stands on a whole machine
HERE = Path(__file__).parent
UBUNTUS = {"ubuntu2204": ("22.04", "jammy"), "ubuntu2404": ("24.04", "noble")}  # which this computer's own tree plays
RELEASES = {"debian13": "trixie"}  # those with a tree of their own
ARCHIVE = f"""Types: deb
URIs: http://{GATEWAY}:{PORT}/archive/@/
Suites: /
Signed-By: /usr/share/keyrings/archive.asc
"""
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
    """A machine, how all of them are played on, and the repositories that feed them, with who serves them."""

    name: str
    site: Site
    root: Path
    repositories: Path
    keys: tuple[apt_repository.Key, ...]
    server: apt_repository.Server

    @property
    def address(self) -> str:
        return next(node["address"] for node in self.site.handover["nodes"] if node["name"] == self.name)

    def play(
        self,
        playbook: str = "gpu_node.yml",
        *arguments: str,
        handover: dict[str, Any] | None = None,
        **settings: object,
    ) -> Played:
        cuda, toolkit, archive = self.keys
        sources = {
            "nvidia_sources_cuda": f"http://{GATEWAY}:{PORT}/cuda",
            "nvidia_sources_toolkit": f"http://{GATEWAY}:{PORT}/toolkit",
            "nvidia_sources_cuda_key": cuda.fingerprint,
            "nvidia_sources_toolkit_key": toolkit.fingerprint,
            **({"nvidia_driver_may_reboot": True} if playbook == "gpu_node.yml" else {}),
            "verify_disks": "{{ {gpufleet_var: 1} if gpufleet_gpus | int > 0 else {} }}",  # all share one disk
            "efa_source": f"http://{GATEWAY}:{PORT}/installers",
            "erdma_source": f"http://{GATEWAY}:{PORT}/installers",
            "doca_ofed_source": f"http://{GATEWAY}:{PORT}/doca",
            "mounts_mountpoint_source": f"http://{GATEWAY}:{PORT}/installers",
            "mounts_lustre_source": f"http://{GATEWAY}:{PORT}/lustre",
            "mounts_lustre_key_source": f"http://{GATEWAY}:{PORT}/lustre/key.asc",
            "mounts_lustre_key": archive.fingerprint,
        }
        return self.site.play(playbook, *arguments, handover=handover, **{**sources, **settings})

    def run(self, line: str, *, fails: bool = False) -> str:
        """What a command line says on the machine as root."""
        told = Handover.model_validate(self.site.handover)
        here = next(node for node in told.nodes if node.name == self.name)
        answer = ssh.run(told, here, f"sudo sh -c '{line}'", seconds=LINE_SECONDS, most=OUTPUT_BYTES)
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


# What the fixture `boot` gives: `fleet` by hardware alone.
Boot = Callable[..., AbstractContextManager[tuple[GpuMachine, ...]]]


@contextmanager
def fleet(folder: Path, *hardware: Hardware) -> Iterator[tuple[GpuMachine, ...]]:
    """Booted machines, gpu-1 and so on, each with its GPUs, and nothing of them afterwards."""
    site = folder / "site"
    site.mkdir()
    specs = [asked(site, number, RELEASES.get(each.distribution)) for number, each in enumerate(hardware, 1)]
    keys = tuple(apt_repository.Key(name) for name in ("cuda", "toolkit", "archive"))
    repositories = folder / "repositories"
    for distribution in {each.distribution for each in hardware}:
        fill(repositories, distribution, keys)
    installed = {name: fabric_installer(repositories / "installers", name) for name in {h.fabric for h in hardware}}
    try:
        with ThreadPoolExecutor(BOOT_AT_ONCE) as pool:
            list(pool.map(machine.create, specs))
        with apt_repository.served(repositories, GATEWAY, PORT) as server:
            handed = Site(folder, (), handover(specs, hardware, installed), make_package(folder / "training"))
            roots = [spec.folder / "disk" / "root" for spec in specs]
            for each, root in zip(hardware, roots, strict=True):
                furnish(root, each, keys[2])
            found = tuple(
                GpuMachine(spec.name, handed, root, repositories, keys, server)
                for spec, root in zip(specs, roots, strict=True)
            )
            for each, about in zip(found, hardware, strict=True):
                if about.distribution == "rhel9":
                    red_hat.disguise(each.root, each.run, f"http://{GATEWAY}:{PORT}/rocky", keys[2])
                each.run("systemctl daemon-reload && systemctl start standin-hardware")
            yield found
    finally:
        sweep.remove(site)
        for key in keys:
            key.close()


def asked(site: Path, number: int, release: str | None) -> NodeSpec:
    """A machine of the lab's network by its number, on this computer's release or another."""
    environment = str(Path(sys.executable).parents[1])
    ground = {"cidr": CIDR, "gateway": GATEWAY, "base": base.name(release), "environment": environment}
    address, name = f"{NETWORK}.{10 + number}", f"gpu-{number}"
    return NodeSpec(site=site, name=name, address=address, port=22, public_keys=(), storage={}, machine=ground)


def disguise(version: str, codename: str) -> dict[str, str]:
    """The files by which a release of Ubuntu is known."""
    return {
        "usr/lib/os-release": f'NAME="Ubuntu"\nID=ubuntu\nID_LIKE=debian\nVERSION_ID="{version}"\n'
        f'VERSION="{version} LTS"\nVERSION_CODENAME={codename}\nUBUNTU_CODENAME={codename}\n',
        "etc/lsb-release": f"DISTRIB_ID=Ubuntu\nDISTRIB_RELEASE={version}\nDISTRIB_CODENAME={codename}\n",
    }


def furnish(root: Path, hardware: Hardware, archive: apt_repository.Key) -> None:
    """The stand-ins, the distribution's archive, and the name that the distribution goes by."""
    source = ARCHIVE.replace("@", hardware.distribution)
    files = {
        **{f"usr/local/lib/standin/{file.name}": file.read_text() for file in HERE.glob("standin_*.py")},
        "usr/local/sbin/blkid": nvidia_packages.program("blkid", "standin_disks"),
        "usr/local/sbin/mount": nvidia_packages.program("mount", "standin_disks"),
        "var/lib/standin/disks.json": json.dumps(hardware.devices),
        "usr/local/sbin/modinfo": nvidia_packages.program("modinfo"),
        "var/lib/standin/gpu.json": json.dumps(
            {"model": hardware.model, "count": hardware.count, "cards": hardware.cards}
        ),
        "etc/systemd/system/standin-hardware.service": HARDWARE,
        "usr/share/keyrings/archive.asc": archive.public.decode(),
        **({} if hardware.distribution == "rhel9" else {"etc/apt/sources.list.d/archive.sources": source}),
        **(disguise(*UBUNTUS[hardware.distribution]) if hardware.distribution in UBUNTUS else {}),
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


def handover(
    specs: Sequence[NodeSpec], hardware: Sequence[Hardware], installed: dict[str, dict[str, str]]
) -> dict[str, Any]:
    """The machines as a cluster, a group for each kind. installed: the installers of their fabrics."""
    site = specs[0].site
    keys = {"key_file": str(site / "key"), "known_hosts_file": str(site / "known_hosts")}
    kinds = [each for i, each in enumerate(hardware) if each not in hardware[:i]]
    storage = {item.name: item.model_dump(mode="json") for each in kinds for item in each.storage}
    return {
        "version": 1,
        "stack": "gpus",
        "cloud": "local",
        "region": None,
        "access": {"user": MACHINE_USER, **keys},
        "nodes": [
            {
                "name": spec.name,
                "group": group_name(each),
                "address": spec.address,
                "port": spec.port,
                "host_key": spec.host_key,
                "prefix": "/",
            }
            for spec, each in zip(specs, hardware, strict=True)
        ],
        "groups": [group(each, hardware.count(each), installed[each.fabric]) for each in kinds],
        "storage": list(storage.values()),
        "store": {"host": "control", "address": GATEWAY},
        "environment": {"python": sys.executable, "shared": True},
    }


def group(hardware: Hardware, count: int, installer: dict[str, str]) -> dict[str, Any]:
    """A group with the lock that the tables have for its GPUs."""
    gpu = catalog.load().gpu(hardware.gpu)
    return {
        "name": group_name(hardware),
        "count": count,
        "gpu": gpu.name,
        "gpus_per_node": hardware.count,
        "fabric": hardware.fabric,
        "fabric_devices": len(hardware.cards),
        "fabric_installer": installer,
        "mig": hardware.mig,
        "disks": [disks.model_dump(mode="json") for disks in hardware.disks],
        "drivers": {name: row.to_handover() for name, row in drivers.load().by_distribution(gpu).items()},
    }


def group_name(hardware: Hardware) -> str:
    return f"{hardware.model}-{hardware.distribution}-{hardware.fabric}"


def lacking(folder: Path, machines: int = 1) -> str | None:
    """Why there can be no such machines on this computer."""
    problems = machine.problems(folder, machines)
    if not problems and not shutil.which("gpg"):
        return "gpg is missing: install the package gpg"
    return problems[0] if problems else None
