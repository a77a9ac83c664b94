"""The base tree of all local machines: this computer's own distribution with systemd, SSH and Python; built once.

It is of the same release as this computer, so that the interpreter shared with the machines finds its libraries.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from infra.clouds.local.nodes import processes
from infra.clouds.local.nodes.errors import LocalError
from infra.clouds.local.nodes.site import locked

PACKAGES = (
    "ca-certificates", "dbus", "gpg", "iproute2", "kmod", "nftables", "openssh-server", "procps", "python3",
    "python3-apt", "sudo", "systemd", "systemd-sysv",
)  # fmt: skip
OPTIONS = (
    "--variant=apt",
    '--aptopt=Apt::Install-Recommends "false"',
    '--aptopt=Acquire::Languages "none"',
    "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
    "--dpkgopt=force-unsafe-io",
    '--customize-hook=rm -f "$1"/etc/ssh/ssh_host_*',
)
# The builder and all its children die with this process, and its mounts are invisible to others.
LEASH = ("setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
NEEDED_BYTES = 600 << 20


def name(release: str | None = None) -> str:
    """The tree's name: another release or another list of packages is another tree.

    release: another than this computer's, where the shared interpreter must find its libraries, too.
    """
    recipe = hashlib.sha256("\n".join((*PACKAGES, *OPTIONS)).encode()).hexdigest()[:8]
    return f"base-{release or suite() or 'unknown'}-{recipe}"


def tree(name: str) -> Path:
    """Where a base tree lies, built or not."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpufleet" / name


def suite() -> str | None:
    """The release of this computer, if it is a Debian or an Ubuntu."""
    release = platform.freedesktop_os_release()
    family = {release.get("ID"), *release.get("ID_LIKE", "").split()}
    return release.get("VERSION_CODENAME") if family & {"debian", "ubuntu"} else None


def problems() -> list[str]:
    """Why a base tree cannot be built here; empty once it exists."""
    place = tree(name())
    if place.exists():
        return []
    if not suite():
        return ["machines need Debian or Ubuntu on this computer: use `isolation: process`"]
    if not shutil.which("mmdebstrap"):
        return ["mmdebstrap is missing: install the package mmdebstrap"]
    there = next(parent for parent in place.parents if parent.exists())
    if (free := shutil.disk_usage(there).free) < NEEDED_BYTES:
        return [f"the base tree needs {NEEDED_BYTES >> 20} MB in {there}, {free >> 20} MB are free: free some space"]
    return []


def ready(name: str) -> Path:
    """The base tree, built first if it does not exist yet (about a minute). Raises LocalError."""
    place = tree(name)
    with locked(place.parent):
        if not place.exists():
            for stale in place.parent.glob("base-*.part"):
                shutil.rmtree(stale)
            _build(place)
    return place


def _build(place: Path) -> None:
    release, part, began = place.name.split("-")[1], place.with_name(place.name + ".part"), processes.monotonic()
    print(f"building the base tree of the machines ({release}), once; about a minute", file=sys.stderr, flush=True)
    packages = f"--include={','.join(PACKAGES)}"
    answer = processes.attempt(*LEASH, "mmdebstrap", "--quiet", *OPTIONS, packages, release, part, mirror())
    if answer.returncode:
        shutil.rmtree(part, ignore_errors=True)
        errors = [line for line in answer.stderr.splitlines() if line.startswith("E:")] or answer.stderr.splitlines()
        reason = errors[0] if errors else answer.returncode
        raise LocalError(f"building the base tree from {mirror()} failed: {reason}")
    part.rename(place)
    print(f"base tree built in {processes.monotonic() - began:.0f} s", file=sys.stderr, flush=True)


def mirror() -> str:
    """The package archive of this computer. Raises LocalError."""
    for line in _sources():
        if source := re.match(r"(?:URIs:\s*|deb\s+(?:\[[^]]*\]\s*)?)((?:https?|file)://\S+)", line):
            return source[1]
    raise LocalError("no package archive in /etc/apt/sources.list(.d): machines need one to be built from")


def _sources() -> Iterator[str]:
    """The lines of all source files, the distribution's own first."""
    folder = Path("/etc/apt/sources.list.d")
    own = (folder / "debian.sources", folder / "ubuntu.sources", Path("/etc/apt/sources.list"))
    for file in (*own, *sorted(folder.glob("*.list"))):
        if file.exists():
            yield from file.read_text().splitlines()
