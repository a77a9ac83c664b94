"""Real machines behind a cloud's instances: for each one that runs, a systemd-nspawn machine with an SSH server.

They stand on one bridge, which is the VPC: at their private addresses, at their public ones where they have some, each
behind its security groups. This computer is a person on the internet, at `PERSON`; it is also the VPC's router, where
object storage and the package mirrors answer. Needs root.
"""

from __future__ import annotations

import ipaddress
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import apt_repository  # pyright: ignore[reportMissingImports]: conftest.py finds it
import packaging
from cloud_provider.store import Store

from cloud_hosts import image, metadata
from cloud_hosts.image import Mirrors
from cloud_hosts.land import Instance, Land
from infra.clouds.bundle import LOCK, PLAYER, PROJECT, needed
from infra.clouds.local.nodes import base, machine, sweep, wire
from infra.clouds.local.nodes.processes import run
from infra.clouds.local.nodes.site import NodeSpec, kernel_name

PERSON, PEOPLE = "198.51.100.7", "198.51.100.0/24"
LOOK_SECONDS = 0.2
DISK_GIB = 100


@dataclass
class Hosts:
    """The machines of one cloud. Looked after by a thread, which keeps them what the instances are."""

    land: Land
    store: Store
    site: Path
    cidr: str
    mirrors: Mirrors
    upload: Callable[[Store], None]
    specs: dict[str, NodeSpec] = field(default_factory=dict)
    published: set[str] = field(default_factory=set)

    def follow(self, stop: threading.Event) -> None:
        while not stop.is_set():
            self._look()
            stop.wait(LOOK_SECONDS)

    def kill(self, id_: str) -> None:
        """Takes a machine away without a word, as a cloud that reclaims it."""
        sweep.remove_node(self.site, self.specs[id_].name)

    def root(self, id_: str) -> Path:
        """The machine's files, as seen from here."""
        return self.specs[id_].folder / "disk" / "root"

    def _look(self) -> None:
        running = self.land.running(self.store)
        self.upload(self.store)  # after the look: what a machine fetches was there before it
        gone, fresh = set(self.specs) - set(running), [row for id_, row in running.items() if id_ not in self.specs]
        for id_ in gone:
            sweep.remove_node(self.site, self.specs.pop(id_).name)
        born = {row.id: self.land.instance(self.store, row) for row in fresh}
        with ThreadPoolExecutor() as pool:
            self.specs |= dict(zip(born, pool.map(self._booted, born.values()), strict=True))
        user = self.land.user
        said = {id_: image.first_boot(each, self.specs[id_], self.mirrors, user) for id_, each in born.items()}
        if gone or fresh:
            for id_ in self.specs:
                self._in_namespace(id_, ["nft", "-f", "-"], self.land.firewall(self.store, running[id_]))
        for id_, row in running.items():
            self._publish(id_, self.land.public_address(self.store, row))
        for id_, console in said.items():
            (now,) = self.store.rows("id = ?", id_)
            self.store.put([replace(now, outputs={**now.outputs, "console": console})])

    def _booted(self, born: Instance) -> NodeSpec:
        ground = {"cidr": self.cidr, "gateway": self.mirrors.host, "base": base.name()}
        spec = NodeSpec(
            site=self.site,
            name=born.name,
            address=born.address,
            port=22,
            public_keys=(),
            storage={},
            machine={**ground, "environment": str(Path(sys.executable).parents[1])},
        )
        machine.create(spec)
        run("mount", "-o", f"remount,size={DISK_GIB}g", spec.folder / "disk")  # takes what is written, no more
        image.furnish(spec, self.mirrors, self.land.user)
        image.with_ensurepip(spec.folder / "disk" / "root")
        space = kernel_name(self.site, spec.name)
        told = self.land.metadata(born)
        run("ip", "-n", space, "address", "add", f"{told.address}/32", "dev", "lo")
        service = [sys.executable, metadata.__file__, json.dumps(asdict(told))]
        subprocess.Popen(["ip", "netns", "exec", space, *service], stdin=subprocess.DEVNULL)
        return spec

    def _publish(self, id_: str, address: str) -> None:
        if not address or id_ in self.published:
            return
        self.published.add(id_)
        space = kernel_name(self.site, self.specs[id_].name)
        run("ip", "-n", space, "address", "add", f"{address}/32", "dev", "eth0")
        run("ip", "-n", space, "route", "add", f"{PERSON}/32", "dev", "eth0")
        run("ip", "route", "replace", f"{address}/32", "dev", wire.bridge(self.site), "src", PERSON)

    def _in_namespace(self, id_: str, command: list[str], given: str) -> None:
        space = kernel_name(self.site, self.specs[id_].name)
        subprocess.run(["ip", "netns", "exec", space, *command], input=given, text=True, check=True)


@contextmanager
def following(land: Land, store: Store, folder: Path, cidr: str) -> Iterator[Hosts]:
    """Machines for the instances of a cloud, in a VPC of this network; nothing of them is left afterwards."""
    site, router = folder / "machines", land.router(cidr)
    site.mkdir(parents=True)
    switch = wire.bridge(site)
    with ExitStack() as after:
        after.callback(sweep.remove, site)
        run("ip", "link", "add", switch, "type", "bridge")
        run("ip", "address", "add", f"{router}/{ipaddress.ip_network(cidr).prefixlen}", "dev", switch)
        run("ip", "address", "add", f"{PERSON}/32", "dev", switch)
        run("ip", "link", "set", switch, "up")
        environment, upload = after.enter_context(land.objects(router))
        mirrors = after.enter_context(_mirrors(folder / "mirrors", router, land.packages))
        found = replace(mirrors, environment=environment)
        hosts, stop = Hosts(land, store, site, cidr, found, upload), threading.Event()
        thread = threading.Thread(target=hosts.follow, args=(stop,), daemon=True)
        thread.start()
        after.callback(thread.join)
        after.callback(stop.set)
        yield hosts


@contextmanager
def _mirrors(folder: Path, router: str, packages: Mapping[str, Mapping[str, str]]) -> Iterator[Mirrors]:
    """What user data installs: packages of those names, and what pip asks for."""
    key = apt_repository.Key("archive")
    wanted = {"python3-venv": {}, "python3-packaging": _of_packaging(), **packages}.items()
    # The version is above Ubuntu's own: an older python3-venv breaks python3, which apt then removes.
    made = [apt_repository.Package(name=name, version="9", files=dict(files)) for name, files in wanted]
    apt_repository.write(folder / "archive", made, key, "Ubuntu")
    _wheels(folder / "wheels")
    try:
        with apt_repository.served(folder, router, 80):
            yield Mirrors(host=router, archive_key=key.public)
    finally:
        key.close()


def _of_packaging() -> dict[str, str]:
    """The library of the lock, where Ubuntu's package has its own: Ansible's module for pip imports it."""
    folder = Path(packaging.__file__).parent
    files = (file.relative_to(folder.parent) for file in folder.rglob("*.py"))
    return {f"/usr/lib/python3/dist-packages/{file}": (folder.parent / file).read_text() for file in files}


def _wheels(folder: Path) -> None:
    """The part of the lock that a node needs to run a playbook, from the package index that pip is set to ask."""
    folder.mkdir()
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as wanted:
        wanted.write("".join(needed((PROJECT / LOCK).read_text(), PLAYER)))
        wanted.flush()
        pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "download"]
        subprocess.run([*pip, "--no-deps", "--require-hashes", "-d", folder, "-r", wanted.name], check=True)
