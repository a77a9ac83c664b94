"""The site of a stack: the folder, the login and the names that all its nodes on this computer share.

Everything a site has on disk is below its folder; everything it has in the kernel (network namespaces, links, cgroups)
has a name that starts with its `tag`. A sweep finds all of it by that, without any record.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.clouds.local.nodes.processes import run

MACHINE_USER, MACHINE_UID = "ops", 1000


def folder(root: Path, stack: str) -> Path:
    """Where the site of a stack lies in a project."""
    return root / ".gpufleet" / "local" / stack


def tag(site: Path) -> str:
    """Six characters, unique to the site's folder: two checkouts can live side by side on one computer."""
    return "gf" + _digest(str(site), 4)


def login(isolation: str) -> str:
    """The login of a node: of a process node, the user who started it."""
    return MACHINE_USER if isolation == "machine" else pwd.getpwuid(os.getuid()).pw_name


@dataclass(frozen=True, kw_only=True)
class NodeSpec:
    """The properties of one node. `machine` is None for a node that is only a process.

    public_keys: who may log in beside the site's own key. storage: name → path inside a machine.
    machine: the network's `cidr` and `gateway`, the name of the `base` tree and the Python `environment` to share.
    """

    site: Path
    name: str
    address: str
    port: int
    public_keys: tuple[str, ...]
    storage: dict[str, str]
    machine: dict[str, str] | None

    @classmethod
    def read(cls, props: dict[str, Any]) -> NodeSpec:
        """From the properties of a Pulumi resource, where every number is a float."""
        return cls(
            site=Path(props["path"]),
            name=props["node"],
            address=props["address"],
            port=int(props["port"]),
            public_keys=tuple(props["public_keys"]),
            storage=props["storage"],
            machine=props.get("machine"),
        )

    @property
    def folder(self) -> Path:
        return self.site / "nodes" / self.name

    @property
    def service(self) -> Path:
        """The folder of its server: host_key, pid, log and other files."""
        return self.folder / "sshd"

    @property
    def keys(self) -> str:
        """The lines of its authorized_keys."""
        return "".join(f"{key}\n" for key in ((self.site / "key.pub").read_text().strip(), *self.public_keys))

    @property
    def host_key(self) -> str:
        """`type base64`, as in known_hosts."""
        return " ".join((self.service / "host_key.pub").read_text().split()[:2])


def kernel_name(site: Path, node: str) -> str:
    """A machine's name in the kernel: 15 characters, the longest that a network link can have."""
    return f"{tag(site)}-{_digest(node, 8)}"


def prepare(spec: NodeSpec) -> None:
    """Creates what is missing of the site: its key pair and storage folders. Safe to call from several nodes."""
    with locked(spec.site / "nodes"):
        if not (spec.site / "key.pub").exists():
            (spec.site / "key").unlink(missing_ok=True)
            _make_key(spec.site / "key", f"gpufleet {spec.site.name}")
        for name in spec.storage:
            shared = spec.site / "storage" / name
            shared.mkdir(parents=True, exist_ok=True)
            if spec.machine:
                os.chown(shared, MACHINE_UID, MACHINE_UID, follow_symlinks=False)


def register(spec: NodeSpec) -> None:
    """Creates a node's folder, its host key and its entries in known_hosts and ssh_config."""
    spec.service.mkdir(parents=True)
    _make_key(spec.service / "host_key", spec.name)
    entry = {"address": spec.address, "port": spec.port, "user": login("machine" if spec.machine else "process")}
    _replace(spec.service / "node.json", json.dumps(entry))
    publish(spec.site)


def publish(site: Path) -> None:
    """Writes known_hosts and ssh_config of the existing nodes."""
    with locked(site / "nodes"):
        known, hosts = "", ""
        for file in sorted(site.glob("nodes/*/sshd/node.json")):
            node = json.loads(file.read_text())
            known += f"{_known_as(node)} {(file.parent / 'host_key.pub').read_text()}"
            hosts += HOST.format(name=file.parents[1].name, **node)
        _replace(site / "known_hosts", known)
        access = ACCESS.format(key=quoted(site / "key"), known=quoted(site / "known_hosts"))
        _replace(site / "ssh_config", hosts + access)


HOST = """Host {name} {address}
  HostName {address}
  Port {port}
  User {user}
"""

ACCESS = """Host *
  IdentityFile {key}
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile {known}
  GlobalKnownHostsFile none
  StrictHostKeyChecking yes
  BatchMode yes
  ConnectTimeout 10
"""


def holder(site: Path, address: str, port: int) -> str | None:
    """The name of the node of this site that has the address, if any."""
    for file in site.glob("nodes/*/sshd/node.json"):
        with suppress(FileNotFoundError):  # it is being removed
            node = json.loads(file.read_text())
            if (node["address"], node["port"]) == (address, port):
                return file.parents[1].name
    return None


def quoted(path: Path) -> str:
    """A path as one word of an OpenSSH option that knows tokens, which start with %."""
    return '"{}"'.format(str(path).replace("%", "%%"))


@contextmanager
def locked(place: Path, *, shared: bool = False) -> Iterator[None]:
    """Holds a folder's own lock; creates the folder if missing, also when it is removed while this waits.

    The kernel drops the lock with the process, so a killed one blocks no other.
    """
    while True:
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            handle = os.open(place, os.O_RDONLY)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
            if place.exists() and os.path.samestat(os.fstat(handle), place.stat()):
                yield
                return
        finally:
            os.close(handle)


def _make_key(file: Path, comment: str) -> None:
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", file)


def _known_as(node: dict[str, Any]) -> str:
    return node["address"] if node["port"] == 22 else f"[{node['address']}]:{node['port']}"


def _replace(file: Path, text: str) -> None:
    part = file.with_suffix(".part")
    part.write_text(text)
    part.replace(file)


def _digest(text: str, length: int) -> str:
    return base64.b32encode(hashlib.sha256(text.encode()).digest()).decode().lower()[:length]
