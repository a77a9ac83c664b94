"""Programs of the system: OpenSSH for the nodes on this computer, and what the tests of machine isolation need."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from tools.phases import CommandError, PhaseError, SkippedError, command

SSH = {"ssh": "openssh-client", "ssh-keygen": "openssh-client", "sshd": "openssh-server"}
MACHINES = {
    "systemd-nspawn": "systemd-container",
    "mmdebstrap": "mmdebstrap",
    "ip": "iproute2",
    "gpg": "gnupg",
    "nft": "nftables",  # security groups around stand-in instances
    "rpmbuild": "rpm",  # packages of the machine that calls itself Rocky Linux
    "createrepo_c": "createrepo-c",
}

Working = Callable[[str], None]


def ssh_phase(working: Working) -> str:
    """OpenSSH, client and server. The server is only run by hand, for one node: no system service is wanted."""
    packages = missing(SSH)
    if not packages:
        return f"{path_of('sshd')}"
    # With an init system, installing the package opens port 22 to the network: that is the owner's to decide.
    if not can_install() or Path("/run/systemd/system").exists():
        raise PhaseError(
            f"no {_listed(SSH)} on this computer",
            f"sudo apt-get install {' '.join(packages)} (or your system's package of that name), then run again",
        )
    try:
        install(packages, working)
    except CommandError as error:
        raise PhaseError(str(error), f"install {' '.join(packages)}, then run again", error.tail) from error
    return f"{path_of('sshd')}, installed {' '.join(packages)}"


def machines_phase(working: Working) -> str:
    """What tests of machine isolation need. Raises SkippedError where it cannot be had; those tests then say so."""
    packages = missing(MACHINES)
    if not packages:
        return "tools of machine isolation are here"
    if not can_install():
        raise SkippedError(
            f"no {_listed(MACHINES)} and no root to install them: tests of machine isolation will be skipped"
        )
    try:
        install(packages, working)
    except CommandError as error:
        raise SkippedError(f"{error}: tests of machine isolation will be skipped") from error
    return f"installed {' '.join(packages)}"


def path_of(program: str) -> str | None:
    """Where a program is; system folders count even where PATH leaves them out."""
    folders = [os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin", "/sbin"]
    return shutil.which(program, path=os.pathsep.join(folders))


def missing(programs: Mapping[str, str]) -> list[str]:
    """The Debian packages of the programs that are not here."""
    return sorted({package for program, package in programs.items() if path_of(program) is None})


def can_install() -> bool:
    """Whether packages can be installed without asking anybody."""
    return os.geteuid() == 0 and path_of("apt-get") is not None


def install(packages: list[str], working: Working) -> None:
    """Installs Debian packages, by fresh package lists. Raises CommandError."""
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    command(["apt-get", "update"], working, env=quiet)
    command(["apt-get", "install", "--yes", "--no-install-recommends", *packages], working, env=quiet)


def _listed(programs: Mapping[str, str]) -> str:
    return ", ".join(program for program in programs if path_of(program) is None)
