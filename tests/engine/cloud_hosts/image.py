"""What a fresh machine of a stand-in cloud starts from, and what cloud-init does on it at its first boot."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cloud_hosts.land import Instance
from infra.clouds.local.nodes import machine
from infra.clouds.local.nodes.site import NodeSpec

UID = 1100
CONSOLE = "-----BEGIN SSH HOST KEY KEYS-----\n{key} root@{name}\n-----END SSH HOST KEY KEYS-----\n"
VENV = "opt/gpufleet/venv"  # torch is there already, as in an image that was baked: nobody waits for gigabytes

PIP = """[global]
no-index = true
find-links = {url}/wheels/
trusted-host = {host}
"""
APT = "Types: deb\nURIs: {url}/archive/\nSuites: /\nSigned-By: /usr/share/keyrings/archive.asc\n"


@dataclass(frozen=True, kw_only=True)
class Mirrors:
    """Where machines get packages: `<url>/archive/` for apt, signed by `archive_key`, and `<url>/wheels/` for pip.

    environment: in which user data finds the cloud's services.
    """

    host: str
    archive_key: bytes
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://{self.host}"


def furnish(spec: NodeSpec, mirrors: Mirrors, user: str) -> None:
    """Makes the machine what the image would have made it."""
    root = spec.folder / "disk" / "root"
    files = {
        "usr/share/keyrings/archive.asc": mirrors.archive_key.decode(),
        "etc/apt/sources.list.d/archive.sources": APT.format(url=mirrors.url),
        "etc/pip.conf": PIP.format(url=mirrors.url, host=mirrors.host),
    }
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    machine.add_login(root, user, UID)
    (root / VENV).parent.mkdir(parents=True, exist_ok=True)
    (root / VENV).symlink_to(Path(sys.executable).parents[1])


def first_boot(born: Instance, spec: NodeSpec, mirrors: Mirrors, user: str) -> str:
    """Lets the key pair in and starts the user data; returns what the console then shows."""
    keys = spec.folder / "disk" / "root" / "home" / user / ".ssh" / "authorized_keys"
    keys.write_text("".join(f"{key}\n" for key in born.keys))
    os.chown(keys, UID, UID)
    _run_user_data(born.script, spec, mirrors)
    return CONSOLE.format(key=spec.host_key, name=spec.name)


def _run_user_data(content: bytes, spec: NodeSpec, mirrors: Mirrors) -> None:
    script = spec.folder / "disk" / "root" / "var/lib/cloud/user-data"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_bytes(content)
    settings = [f"--setenv={name}={value}" for name, value in mirrors.environment.items()]
    unit = ["systemd-run", "--quiet", "--unit=user-data", *settings, "/bin/bash", "/var/lib/cloud/user-data"]
    line = f"sudo {shlex.join(unit)}"
    subprocess.run(["ssh", "-F", spec.site / "ssh_config", spec.name, line], stdin=subprocess.DEVNULL, check=True)


def with_ensurepip(root: Path) -> None:
    """Ubuntu's package python3-venv brings it; the stand-in package of that name is empty."""
    for place in (root / "usr/lib").glob("python3.*"):
        bundled = Path(sys.base_prefix, "lib", f"python3.{sys.version_info[1]}", "ensurepip")
        shutil.copytree(bundled, place / "ensurepip", dirs_exist_ok=True)
