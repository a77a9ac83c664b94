"""A lab machine that calls itself Rocky Linux 9: Debian's own dnf and rpm, and no apt any more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import apt_repository
import nvidia_packages
import rpm_repository
from apt_repository import Key, Package

TOOLS = ("dnf", "rpm")
GONE = ("apt", "apt-get", "apt-cache", "apt-mark", "apt-config", "dpkg", "dpkg-query")
FILES = {
    "usr/lib/os-release": 'NAME="Rocky Linux"\nID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.6"\n'
    'VERSION="9.6 (Blue Onyx)"\nPLATFORM_ID="platform:el9"\n',
    "etc/redhat-release": "Rocky Linux release 9.6 (Blue Onyx)\n",
    "etc/rpm/macros": "%_dbpath /var/lib/rpm\n",  # Debian's own is in root's home
    # dnf.conf as RHEL 9 ships it
    "etc/dnf/dnf.conf": "[main]\ngpgcheck=1\ninstallonly_limit=3\nclean_requirements_on_remove=True\nbest=True\n"
    "skip_if_unavailable=False\n",
}
REPOSITORY = """[{name}]
name={name}
baseurl={url}
gpgcheck=1
gpgkey=file:///etc/pki/rpm-gpg/archive.asc
"""


# What a machine of RHEL has installed from its first day: dnf takes the release from it, and rpm the shell of scripts.
RELEASE = Package(
    name="rocky-release",
    version="9.6-1.el9",
    provides="system-release(releasever) (= 9), system-release (= 9), /bin/sh",
)


def fill(folder: Path, keys: tuple[Key, ...]) -> None:
    """The repositories of such a machine. NVIDIA signs its packages, and of the toolkit the metadata instead."""
    cuda, toolkit, archive = keys
    place = folder / "cuda/rhel9/x86_64"
    rpm_repository.write(place, nvidia_packages.cuda("rhel9"), cuda, signs_packages=True, signs_metadata=False)
    (place / "D42D0685.pub").write_bytes(cuda.public)
    place = folder / "toolkit/stable/rpm/x86_64"
    rpm_repository.write(place, nvidia_packages.toolkit(), toolkit, signs_packages=False, signs_metadata=True)
    (folder / "toolkit/gpgkey").write_bytes(toolkit.public)
    place, packages = folder / "rocky", (*nvidia_packages.red_hat_archive(), RELEASE)
    rpm_repository.write(place, packages, archive, signs_packages=True, signs_metadata=False)


def disguise(root: Path, run: Callable[[str], str], url: str, archive: Key) -> None:
    """Makes a booted machine one. run: runs a command line there as root. url: where its own repository lies."""
    apt_repository.on_disk(root, *TOOLS)
    run("apt-get -qq update")
    run(f"DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends {' '.join(TOOLS)}")
    run(" && ".join(f"mv /usr/bin/{program} /usr/bin/{program}.hidden" for program in GONE))
    files = {
        **FILES,
        "etc/pki/rpm-gpg/archive.asc": archive.public.decode(),
        "etc/yum.repos.d/rocky.repo": REPOSITORY.format(name="rocky", url=url),
    }
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    run("dnf --quiet --assumeyes --releasever 9 install rocky-release")
