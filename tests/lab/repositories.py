"""What machines with stand-in GPUs are fed from: NVIDIA's repositories, a distribution's, and fabrics' installers."""

from __future__ import annotations

from pathlib import Path

import apt_repository
import installers
import nvidia_packages
import red_hat

from infra.catalog import drivers


def fill(folder: Path, distribution: str, keys: tuple[apt_repository.Key, ...]) -> None:
    if distribution == "rhel9":
        red_hat.fill(folder, keys)
    else:
        fill_for_apt(folder, distribution, keys)


def fill_for_apt(folder: Path, distribution: str, keys: tuple[apt_repository.Key, ...]) -> None:
    cuda, toolkit, archive = keys
    place = folder / "cuda" / distribution / "x86_64"
    apt_repository.write(place, nvidia_packages.cuda(distribution), cuda, "NVIDIA")
    (place / ("8793F200.pub" if distribution == "debian13" else "3bf863cc.pub")).write_bytes(cuda.public)
    apt_repository.write(folder / "toolkit/stable/deb/amd64", nvidia_packages.toolkit(), toolkit, "NVIDIA")
    (folder / "toolkit/gpgkey").write_bytes(toolkit.public)
    apt_repository.write(folder / "archive" / distribution, nvidia_packages.archive(distribution), archive, "Debian")
    apt_repository.write(folder / "lustre", nvidia_packages.lustre(), archive, "AWS", suite="noble")
    (folder / "lustre/key.asc").write_bytes(archive.public)
    doca = drivers.load().fabric("infiniband")
    assert doca
    place = folder / "doca" / doca.installer / "debian12.5/x86_64"
    apt_repository.write(place, nvidia_packages.doca(doca.installer), archive, "Mellanox")
    (folder / "doca/GPG-KEY-Mellanox.pub").write_bytes(archive.public)


def fabric_installer(folder: Path, fabric: str) -> dict[str, str]:
    """The locked installer of a fabric, with a stand-in in its place."""
    row = drivers.load().fabric(fabric)
    if row is None or fabric not in installers.ARCHIVES:
        return row.to_handover() if row else {}
    return {**row.to_handover(), "sha256": installers.write(folder, fabric, row.installer)}
