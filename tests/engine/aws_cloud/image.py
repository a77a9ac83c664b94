"""What a fresh machine of the stand-in cloud starts from, and what cloud-init does on it at its first boot."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from base64 import b64decode
from dataclasses import dataclass
from pathlib import Path

from cloud_provider.store import Row, Store

from aws_cloud.kinds_ec2 import TEMPLATE
from infra.clouds.local.site import NodeSpec

USER, UID = "ubuntu", 1100
KEY_PAIR = "aws:ec2/keyPair:KeyPair"
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

    services: the address of AWS's services, for boto3.
    """

    host: str
    archive_key: bytes
    services: str

    @property
    def url(self) -> str:
        return f"http://{self.host}"


def furnish(spec: NodeSpec, mirrors: Mirrors) -> None:
    """Makes the machine what the image would have made it."""
    root = spec.folder / "disk" / "root"
    files = {
        "usr/share/keyrings/archive.asc": mirrors.archive_key.decode(),
        "etc/apt/sources.list.d/archive.sources": APT.format(url=mirrors.url),
        "etc/pip.conf": PIP.format(url=mirrors.url, host=mirrors.host),
        f"etc/sudoers.d/{USER}": f"{USER} ALL=(ALL) NOPASSWD:ALL\n",
    }
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / f"etc/sudoers.d/{USER}").chmod(0o440)
    for file, line in (
        ("passwd", f"{USER}:x:{UID}:{UID}::/home/{USER}:/bin/bash\n"),
        ("shadow", f"{USER}:*:19700:0:99999:7:::\n"),
        ("group", f"{USER}:x:{UID}:\n"),
    ):
        with (root / "etc" / file).open("a") as table:
            table.write(line)
    (root / VENV).parent.mkdir(parents=True, exist_ok=True)
    (root / VENV).symlink_to(Path(sys.executable).parents[1])


def first_boot(store: Store, machine: Row, spec: NodeSpec, mirrors: Mirrors) -> str:
    """Lets the key pair in and starts the user data; returns what the console then shows."""
    ssh = spec.folder / "disk" / "root" / "home" / USER / ".ssh"
    ssh.mkdir(parents=True)
    pair = store.rows("type = ? and id = ?", KEY_PAIR, machine.outputs["keyName"])
    (ssh / "authorized_keys").write_text("".join(f"{each.inputs['publicKey']}\n" for each in pair))
    for path in (ssh.parent, ssh, ssh / "authorized_keys"):
        os.chown(path, UID, UID)
    _run_user_data(store, machine, spec, mirrors)
    return CONSOLE.format(key=spec.host_key, name=spec.name)


def _run_user_data(store: Store, machine: Row, spec: NodeSpec, mirrors: Mirrors) -> None:
    (template,) = store.rows("type = ? and id = ?", TEMPLATE, machine.inputs["launchTemplate"]["id"])
    script = spec.folder / "disk" / "root" / "var/lib/cloud/user-data"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_bytes(b64decode(template.inputs["userData"]))
    unit = f"systemd-run --quiet --unit=user-data --setenv=AWS_ENDPOINT_URL={mirrors.services}"
    line = f"sudo {unit} /bin/bash /var/lib/cloud/user-data"
    subprocess.run(["ssh", "-F", spec.site / "ssh_config", spec.name, line], stdin=subprocess.DEVNULL, check=True)


def with_ensurepip(root: Path) -> None:
    """Ubuntu's package python3-venv brings it; the stand-in package of that name is empty."""
    for place in (root / "usr/lib").glob("python3.*"):
        bundled = Path(sys.base_prefix, "lib", f"python3.{sys.version_info[1]}", "ensurepip")
        shutil.copytree(bundled, place / "ensurepip", dirs_exist_ok=True)
