"""A machine of this computer as an attacker: what it plants in its tree does not lead root of this computer outside."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from infra.clouds.local.nodes import machine, tree
from infra.clouds.local.nodes.errors import LocalError
from infra.clouds.local.nodes.site import MACHINE_UID, MACHINE_USER, NodeSpec

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="files of a machine belong to its logins: needs root")

OUTSIDE = "the host's own\n"


@pytest.fixture
def spec(tmp_path: Path) -> NodeSpec:
    """A node whose machine has booted, as far as its keys go."""
    site = tmp_path / "site"
    home = site / "nodes/node-1/disk/root/home" / MACHINE_USER
    (home / ".ssh").mkdir(parents=True, mode=0o700)
    (home / ".ssh/authorized_keys").write_text("old\n")
    (site / "key.pub").write_text("ssh-ed25519 SITE\n")
    return NodeSpec(
        site=site, name="node-1", address="10.0.0.2", port=22, public_keys=("ssh-ed25519 NEW",), storage={}, machine={}
    )


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder of the host that the machine has nothing to do with."""
    folder = tmp_path / "host"
    folder.mkdir(mode=0o755)
    (folder / "authorized_keys").write_text(OUTSIDE)
    return folder


def ssh_folder(spec: NodeSpec) -> Path:
    return spec.folder / "disk/root/home" / MACHINE_USER / ".ssh"


def a_link_for_the_file(ssh: Path, outside: Path) -> None:
    (ssh / "authorized_keys").unlink()
    (ssh / "authorized_keys").symlink_to(outside / "authorized_keys")


def a_link_to_nothing(ssh: Path, outside: Path) -> None:
    (ssh / "authorized_keys").unlink()
    (ssh / "authorized_keys").symlink_to(outside / "fresh")


def a_hard_link(ssh: Path, outside: Path) -> None:
    (ssh / "authorized_keys").unlink()
    (ssh / "authorized_keys").hardlink_to(outside / "authorized_keys")


def a_pipe(ssh: Path, _outside: Path) -> None:
    (ssh / "authorized_keys").unlink()
    os.mkfifo(ssh / "authorized_keys")


def a_device(ssh: Path, _outside: Path) -> None:
    (ssh / "authorized_keys").unlink()
    os.mknod(ssh / "authorized_keys", stat.S_IFCHR | 0o600, os.makedev(1, 7))  # /dev/full


def a_folder(ssh: Path, _outside: Path) -> None:
    (ssh / "authorized_keys").unlink()
    (ssh / "authorized_keys").mkdir()


def a_link_for_its_folder(ssh: Path, outside: Path) -> None:
    (ssh / "authorized_keys").unlink()
    ssh.rmdir()
    ssh.symlink_to(outside)


def a_link_for_the_home(ssh: Path, outside: Path) -> None:
    (outside / ".ssh").mkdir()
    (outside / ".ssh/authorized_keys").write_text(OUTSIDE)
    ssh.parent.rename(ssh.parent.with_name("moved"))
    ssh.parent.symlink_to(outside)


def a_link_for_all_homes(ssh: Path, outside: Path) -> None:
    a_link_for_its_folder(ssh, outside)
    (outside / MACHINE_USER / ".ssh").mkdir(parents=True)
    homes = ssh.parents[1]
    homes.rename(homes.with_name("moved"))
    homes.symlink_to(outside)


def everything(folder: Path) -> dict[str, tuple[int, int, int, bytes]]:
    """Mode, owner, group and content of all that lies below a folder, and of the folder."""
    return {
        str(path): (about.st_mode, about.st_uid, about.st_gid, path.read_bytes() if path.is_file() else b"")
        for path in (folder, *folder.rglob("*"))
        if (about := path.lstat())
    }


@pytest.mark.parametrize("plant", [a_link_for_the_file, a_link_to_nothing, a_hard_link, a_pipe, a_device])
def test_new_keys_take_the_place_of_what_the_machine_planted_and_nothing_outside_changes(
    spec: NodeSpec, outside: Path, plant: Callable[[Path, Path], None]
) -> None:
    plant(ssh_folder(spec), outside)
    before = everything(outside)

    machine.authorize(spec)

    file = ssh_folder(spec) / "authorized_keys"
    about = file.lstat()
    assert everything(outside) == before
    assert stat.S_ISREG(about.st_mode)
    assert (about.st_mode & 0o7777, about.st_uid, about.st_gid) == (0o600, MACHINE_UID, MACHINE_UID)
    assert file.read_text() == "ssh-ed25519 SITE\nssh-ed25519 NEW\n"
    assert list(ssh_folder(spec).iterdir()) == [file]


@pytest.mark.parametrize(
    ("plant", "named"),
    [
        (a_folder, "/home/ops/.ssh/authorized_keys"),
        (a_link_for_its_folder, "/home/ops/.ssh"),
        (a_link_for_the_home, "/home/ops"),
        (a_link_for_all_homes, "/home"),
    ],
)
def test_a_link_for_a_folder_is_refused_by_its_path_in_the_machine_and_nothing_outside_changes(
    spec: NodeSpec, outside: Path, plant: Callable[[Path, Path], None], named: str
) -> None:
    plant(ssh_folder(spec), outside)
    before = everything(outside)

    with pytest.raises(LocalError, match=rf"^{named} of the machine is .*: remove it there$"):
        machine.authorize(spec)

    assert everything(outside) == before


def test_a_path_out_of_the_tree_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="leaves the tree"):
        tree.write(tmp_path, "etc/../../x", "")
