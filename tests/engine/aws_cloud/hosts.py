"""Real machines behind a cloud's instances: for each one that runs, a systemd-nspawn machine with an SSH server.

They stand on one bridge, which is the VPC: at their private addresses, at their public ones where they have some, each
behind its security groups. This computer is a person on the internet, at `PERSON`; it is also the VPC's router, where
S3 and the package mirrors answer. Needs root.
"""

from __future__ import annotations

import functools
import http.server
import ipaddress
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import apt_repository  # pyright: ignore[reportMissingImports]: conftest.py finds it
import boto3
from cloud_provider.store import Row, Store
from moto.server import ThreadedMotoServer

from aws_cloud import firewall, image, metadata
from aws_cloud.image import Mirrors
from aws_cloud.kinds_ec2 import INSTANCE
from aws_cloud.kinds_services import BUCKET, OBJECT
from infra.clouds.bundle import LOCK, PLAYER, PROJECT, needed
from infra.clouds.local import base, machine, sweep, wire
from infra.clouds.local.failure import run
from infra.clouds.local.site import NodeSpec, kernel_name

PERSON, PEOPLE = "198.51.100.7", "198.51.100.0/24"
LOOK_SECONDS = 0.2
DISK_GIB = 100


@dataclass
class Hosts:
    """The machines of one cloud. Looked after by a thread, which keeps them what the instances are."""

    store: Store
    site: Path
    cidr: str
    mirrors: Mirrors
    specs: dict[str, NodeSpec] = field(default_factory=dict)
    uploaded: set[str] = field(default_factory=set)

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
        running = {row.id: row for row in self.store.of(INSTANCE) if row.state == "running"}
        self._upload()  # after the look: what a machine fetches was there before it
        gone, fresh = set(self.specs) - set(running), [row for id_, row in running.items() if id_ not in self.specs]
        for id_ in gone:
            sweep.remove_node(self.site, self.specs.pop(id_).name)
        with ThreadPoolExecutor() as pool:
            self.specs |= dict(pool.map(self._booted, fresh))
        said = {row.id: image.first_boot(self.store, row, self.specs[row.id], self.mirrors) for row in fresh}
        if gone or fresh:
            for id_ in self.specs:
                self._in_namespace(id_, ["nft", "-f", "-"], firewall.ruleset(self.store, running[id_]))
        for id_, console in said.items():
            (now,) = self.store.rows("id = ?", id_)
            self.store.put([replace(now, outputs={**now.outputs, "console": console})])

    def _booted(self, row: Row) -> tuple[str, NodeSpec]:
        ground = {"cidr": self.cidr, "gateway": self.mirrors.host, "base": base.name()}
        spec = NodeSpec(
            site=self.site,
            name=row.outputs["privateDns"].partition(".")[0],
            address=row.outputs["privateIp"],
            port=22,
            public_keys=(),
            storage={},
            machine={**ground, "environment": str(Path(sys.executable).parents[1])},
        )
        machine.create(spec)
        run("mount", "-o", f"remount,size={DISK_GIB}g", spec.folder / "disk")  # takes what is written, no more
        image.furnish(spec, self.mirrors)
        image.with_ensurepip(spec.folder / "disk" / "root")
        space = kernel_name(self.site, spec.name)
        run("ip", "-n", space, "address", "add", f"{metadata.ADDRESS}/32", "dev", "lo")
        if public := row.outputs["publicIp"]:
            run("ip", "-n", space, "address", "add", f"{public}/32", "dev", "eth0")
            run("ip", "-n", space, "route", "add", f"{PERSON}/32", "dev", "eth0")
            run("ip", "route", "replace", f"{public}/32", "dev", wire.bridge(self.site), "src", PERSON)
        service = [sys.executable, metadata.__file__, row.outputs["iamInstanceProfile"]]
        subprocess.Popen(["ip", "netns", "exec", space, *service], stdin=subprocess.DEVNULL)
        return row.id, spec

    def _in_namespace(self, id_: str, command: list[str], given: str) -> None:
        space = kernel_name(self.site, self.specs[id_].name)
        subprocess.run(["ip", "netns", "exec", space, *command], input=given, text=True, check=True)

    def _upload(self) -> None:
        """What the provider was told to put into buckets, where machines can fetch it."""
        for row in (*self.store.of(BUCKET), *self.store.of(OBJECT)):
            if row.id in self.uploaded:
                continue
            self.uploaded.add(row.id)
            s3 = client(self.mirrors.services)
            if row.type == BUCKET:
                s3.create_bucket(Bucket=row.id)
            else:
                s3.upload_file(row.inputs["source"]["path"], row.inputs["bucket"], row.inputs["key"])


def client(url: str) -> Any:
    """S3 as a test speaks to it."""
    return boto3.client(
        "s3", endpoint_url=url, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x"
    )


@contextmanager
def following(store: Store, folder: Path, cidr: str) -> Iterator[Hosts]:
    """Machines for the instances of a cloud, in a VPC of this network; nothing of them is left afterwards."""
    site, router = folder / "machines", str(ipaddress.ip_network(cidr)[1])  # AWS's own router has it, too
    site.mkdir(parents=True)
    switch = wire.bridge(site)
    with ExitStack() as after:
        after.callback(sweep.remove, site)
        run("ip", "link", "add", switch, "type", "bridge")
        run("ip", "address", "add", f"{router}/{ipaddress.ip_network(cidr).prefixlen}", "dev", switch)
        run("ip", "address", "add", f"{PERSON}/32", "dev", switch)
        run("ip", "link", "set", switch, "up")
        moto = ThreadedMotoServer(ip_address=router, port=443, verbose=False)
        moto.start()
        after.callback(moto.stop)
        mirrors = after.enter_context(_mirrors(folder / "mirrors", router))
        hosts, stop = Hosts(store, site, cidr, mirrors), threading.Event()
        thread = threading.Thread(target=hosts.follow, args=(stop,), daemon=True)
        thread.start()
        after.callback(thread.join)
        after.callback(stop.set)
        yield hosts


@contextmanager
def _mirrors(folder: Path, router: str) -> Iterator[Mirrors]:
    """What boot.sh installs: boto3 is that of the lock, in the name of Ubuntu's package."""
    key = apt_repository.Key("archive")
    paths = "\n".join(path for path in sys.path if path.endswith("site-packages"))
    boto = {"/usr/lib/python3/dist-packages/standin-boto3.pth": f"{paths}\n"}
    packages = (
        apt_repository.Package(name="python3-boto3", version="1", files=boto),
        apt_repository.Package(name="python3-venv", version="9"),  # an older one breaks python3, which apt then removes
        apt_repository.Package(name="python3-packaging", version="9"),
    )
    apt_repository.write(folder / "archive", packages, key, "Ubuntu")
    _wheels(folder / "wheels")
    handler = functools.partial(_Quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer((router, 80), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield Mirrors(host=router, archive_key=key.public, services=f"http://{router}:443")
    finally:
        server.shutdown()
        server.server_close()
        key.close()


def _wheels(folder: Path) -> None:
    """The part of the lock that a node needs to run a playbook, from the package index that pip is set to ask."""
    folder.mkdir()
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as wanted:
        wanted.write("".join(needed((PROJECT / LOCK).read_text(), PLAYER)))
        wanted.flush()
        pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "download"]
        subprocess.run([*pip, "--no-deps", "--require-hashes", "-d", folder, "-r", wanted.name], check=True)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Says nothing."""
