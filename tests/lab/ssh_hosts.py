"""Nodes for the playbooks: real SSH servers on loopback, each with a folder of its own as its system."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PLAYBOOKS = Path(__file__).parents[2] / "playbooks"
SSHD = shutil.which("sshd", path="/usr/sbin:/usr/bin:/usr/local/sbin")
RECAP = re.compile(r"^(\S+)\s*: ok=(\d+)\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)", re.MULTILINE)

CONFIG = """ListenAddress {address}
Port {port}
HostKey {prefix}/sshd/host_key
PidFile none
AuthorizedKeysFile {key}.pub
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
SetEnv HOME={prefix}/home
ForceCommand cd; exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"
"""


@dataclass(frozen=True)
class Host:
    """One node: a folder and the address where its server listens."""

    name: str
    prefix: Path
    address: str
    port: int

    def json(self, path: str) -> Any:
        return json.loads((self.prefix / path).read_text())

    @property
    def package(self) -> Path:
        return self.prefix / "opt/gpufleet/current"

    @property
    def facts(self) -> Path:
        return self.prefix / "etc/gpufleet/node.json"

    @property
    def ready(self) -> dict[str, Any]:
        return self.json("var/lib/gpufleet/ready.json")


@dataclass(frozen=True)
class Played:
    """How a play ended: its exit code, its output and its recap, {node: {changed, unreachable, failed}}."""

    code: int
    output: str
    recap: dict[str, dict[str, int]]

    @property
    def changed(self) -> int:
        return sum(counts["changed"] for counts in self.recap.values())


@dataclass(frozen=True)
class Site:
    """The nodes, their handover as data, and how to play a playbook on them."""

    folder: Path
    hosts: tuple[Host, ...]
    handover: dict[str, Any]
    training: Path

    @property
    def sockets(self) -> Path:
        return self.folder / "c"

    def play(
        self, playbook: str, *arguments: str, handover: dict[str, Any] | None = None, **settings: object
    ) -> Played:
        """Runs ansible-playbook as a person would; `settings` become extra variables."""
        file = self.folder / "handover.json"
        file.write_text(json.dumps(handover or self.handover))
        extra = json.dumps({"training_package_source": str(self.training), **settings})
        ran = subprocess.run(
            ["ansible-playbook", "-i", PLAYBOOKS / "inventory", PLAYBOOKS / playbook, "-e", extra, *arguments],
            env={
                **os.environ,
                "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
                "LC_ALL": "C.UTF-8",
                "ANSIBLE_CONFIG": str(PLAYBOOKS / "ansible.cfg"),
                "ANSIBLE_SSH_CONTROL_PATH_DIR": str(self.sockets),
                "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",
                "ANSIBLE_TIMEOUT": "300",  # its hosts share this computer's cores
                "GPUFLEET_HANDOVER": str(file),
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        recap = {
            name: {"changed": int(changed), "unreachable": int(lost), "failed": int(failed)}
            for name, _, changed, lost, failed in RECAP.findall(ran.stdout)
        }
        return Played(ran.returncode, ran.stdout, recap)


@contextmanager
def running(folder: Path, nodes: int) -> Iterator[Site]:
    """That many nodes below a folder, and none of their processes afterwards."""
    assert SSHD, "there is no SSH server on this computer: install the package openssh-server"
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # sshd's own folder for its unprivileged child
    key = make_key(folder / "key")
    names = [f"node-{number}" for number in range(1, nodes + 1)]
    places = zip(names, addresses(nodes), strict=True)
    hosts = tuple(Host(name, folder / name, address, free_port(address)) for name, address in places)
    servers = [start(SSHD, host, key) for host in hosts]
    try:
        for host, server in zip(hosts, servers, strict=True):
            wait_for(host, server)
        yield Site(folder, hosts, handover(folder, hosts, key), make_package(folder / "training"))
    finally:
        for server in servers:
            server.terminate()
            server.wait()


def make_key(path: Path) -> Path:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path], check=True)
    return path


def addresses(count: int) -> list[str]:
    """So many addresses on loopback, at most three, which no other process of these tests has: between the look for a
    free port of one and its use nobody takes it."""
    process = os.getpid()
    return [
        f"127.{2 + (process >> 14) % 60}.{process >> 6 & 255}.{(process & 63) * 4 + number}"
        for number in range(1, count + 1)
    ]


def free_port(address: str) -> int:
    with socket.socket() as probe:
        probe.bind((address, 0))
        return probe.getsockname()[1]


def start(sshd: str, host: Host, key: Path) -> subprocess.Popen[bytes]:
    for part in ("home", "sshd"):
        (host.prefix / part).mkdir(parents=True)
    make_key(host.prefix / "sshd/host_key")
    config = host.prefix / "sshd/config"
    config.write_text(CONFIG.format(address=host.address, port=host.port, prefix=host.prefix, key=key))
    with (host.prefix / "sshd/log").open("wb") as log:
        return subprocess.Popen([sshd, "-D", "-e", "-f", config], stdin=subprocess.DEVNULL, stderr=log)


def wait_for(host: Host, server: subprocess.Popen[bytes]) -> None:
    while server.poll() is None:
        try:
            socket.create_connection((host.address, host.port), 1).close()
        except ConnectionRefusedError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(f"sshd of {host.name} does not start: {(host.prefix / 'sshd/log').read_text()}")


def host_key(host: Host) -> str:
    return " ".join((host.prefix / "sshd/host_key.pub").read_text().split()[:2])


def handover(folder: Path, hosts: tuple[Host, ...], key: Path) -> dict[str, Any]:
    """What a cluster of these nodes would tell."""
    known = folder / "known hosts"  # with a space in it, as a person's folders have
    known.write_text("".join(f"[{host.address}]:{host.port} {host_key(host)}\n" for host in hosts))
    data = folder / "data"
    data.mkdir()
    user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
    return {
        "version": 1,
        "stack": "test",
        "cloud": "local",
        "region": None,
        "access": {"user": user, "key_file": str(key), "known_hosts_file": str(known)},
        "nodes": [
            {
                "name": host.name,
                "group": "node",
                "address": host.address,
                "port": host.port,
                "host_key": host_key(host),
                "prefix": str(host.prefix),
            }
            for host in hosts
        ],
        "groups": [{"name": "node", "count": len(hosts), "gpu": None, "gpus_per_node": 0, "fabric": "none"}],
        "storage": [{"name": "data", "path": str(data)}],
        "store": {"host": "control", "address": "127.0.0.1"},
        "environment": {"python": sys.executable, "shared": True},
    }


def make_package(folder: Path) -> Path:
    """A small stand-in for the training package."""
    folder.mkdir()
    (folder / "__init__.py").write_text('"""A package."""\n')
    (folder / "jobs").mkdir()
    (folder / "jobs/mnist.toml").write_text('name = "mnist"\n')
    return folder


def make_lock(folder: Path, name: str) -> Path:
    """A lock that names one package, which lies beside it and is all but empty."""
    wheel, about = folder / f"{name}-1.0-py3-none-any.whl", f"{name}-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as parts:
        parts.writestr(f"{name}/__init__.py", "")
        parts.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        parts.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        parts.writestr(f"{about}/RECORD", "")
    file = folder / f"{name}.txt"
    file.write_text(f"{name} @ {wheel.as_uri()} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n")
    return file
