"""A machine that calls itself Rocky Linux 9 becomes a GPU node by Debian's own dnf, and stays one."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import red_hat
import rpm_repository
from apt_repository import Key
from gpu_machines import GATEWAY, PORT, Boot, GpuMachine, Hardware
from nvidia_packages import cuda as packages
from ssh_hosts import Played

pytestmark = pytest.mark.drill

DRIVER, AUTOMATIC = "580.178.04", "/etc/dnf/automatic.conf"
A100 = Hardware(model="a100", gpu="A100-SXM4-80GB", count=8, distribution="rhel9")
THEM = f"http://{GATEWAY}:{PORT}/cuda/rhel9/x86_64"
THEIRS = f"[theirs]\nname=theirs of compute/cuda/repos\nbaseurl={THEM}\ngpgcheck=0\nmodule_hotfixes=1\n"


@pytest.fixture(scope="module")
def node(boot: Boot) -> Iterator[GpuMachine]:
    if missing := [package for tool, package in rpm_repository.TOOLS.items() if not shutil.which(tool)]:
        pytest.skip(f"install the packages {' '.join(missing)}")
    with boot(A100) as (found,):
        found.run(f"sed -i /^.base.$/aexcludepkgs=glibc {AUTOMATIC}")
        yield found


@pytest.fixture(scope="module")
def first(node: GpuMachine) -> Played:
    """The machine's first run."""
    return node.play()


def test_a_bare_machine_becomes_a_gpu_node(node: GpuMachine, first: Played) -> None:
    assert first.code == 0, first.output
    details = {check["name"]: check["detail"] for check in node.ready["checks"]}
    assert details["versions"] == f"{DRIVER} open: on disk, loaded, library, fabric manager"
    assert details["packages"] == f"{DRIVER} alone is offered"
    assert node.ready["ready"]


def test_everything_that_the_lock_rules_is_of_its_versions(node: GpuMachine, first: Played) -> None:
    locked = node.site.handover["groups"][0]["drivers"]["rhel9"]
    found = versions(node)

    of_the_driver = {name for name in found if "nvidia" in name and "container" not in name}
    assert {"nvidia-driver-cuda", "nvidia-kmod-common", "nvidia-fabricmanager"} < of_the_driver
    assert {found[name] for name in of_the_driver} == {f"{DRIVER}-1.el9"}
    assert found["datacenter-gpu-manager-4-core"] == f"{locked['dcgm']}-1"
    assert found["cuda-toolkit-13-0"] == f"{locked['cuda_toolkit']}-1"
    assert found["nvidia-container-toolkit"] == found["libnvidia-container1"] == f"{locked['container_toolkit']}-1"


def versions(node: GpuMachine) -> dict[str, str]:
    listing = node.run(r'rpm -qa --queryformat "%{NAME} %{VERSION}-%{RELEASE}\n"')
    return dict(line.split() for line in listing.splitlines())


def test_a_second_run_changes_nothing(node: GpuMachine, first: Played) -> None:
    second = node.play()

    assert (second.code, second.changed) == (0, 0), second.output


def test_no_update_moves_the_lock_though_newer_drivers_lie_beside_it(node: GpuMachine, first: Played) -> None:
    before = versions(node)
    (node.root / "etc/yum.repos.d/theirs.repo").write_text(THEIRS)
    try:
        node.run("dnf -q -y upgrade")
    finally:
        node.run("rm /etc/yum.repos.d/theirs.repo")

    assert versions(node) == before


def test_streams_hide_the_locked_packages_from_sources_without_our_word(node: GpuMachine, first: Played) -> None:
    ask = f"dnf -q --repofrompath=theirs,{THEM} --repo=theirs list --available --showduplicates nvidia-imex"

    assert DRIVER not in node.run(ask, fails=True)
    assert DRIVER in node.run(f"{ask} --setopt=theirs.module_hotfixes=1")


def removed(node: GpuMachine) -> None:
    node.run("rpm --erase --nodeps nvidia-modprobe nvidia-container-toolkit")


def another_version(node: GpuMachine) -> None:
    names = ("nvidia-driver-cuda", "nvidia-persistenced", "libnvidia-ml", "kmod-nvidia-open-dkms")
    wanted = " ".join(f"{name}-595.91.07" for name in names)
    node.run(f"dnf -q -y --allowerasing --disableexcludes=all install {wanted}")
    assert versions(node)["nvidia-driver-cuda"] == "595.91.07-1.el9"


def lock_lifted(node: GpuMachine) -> None:
    node.run("sed -i /^includepkgs/d /etc/yum.repos.d/gpufleet-nvidia.repo; dnf -q -y upgrade nvidia-modprobe")
    assert versions(node)["nvidia-modprobe"] != f"{DRIVER}-1.el9"


def a_foreign_source(node: GpuMachine) -> None:
    (node.root / "etc/yum.repos.d/cuda-rhel9.repo").write_text(THEIRS)


def kernels_let_in(node: GpuMachine) -> None:
    node.run(f"sed -i s/,kernel.$// {AUTOMATIC}")


@pytest.mark.parametrize("harm", [removed, another_version, lock_lifted, a_foreign_source, kernels_let_in])
def test_one_run_heals(node: GpuMachine, first: Played, harm: Callable[[GpuMachine], None]) -> None:
    before = versions(node)
    harm(node)

    healed = node.play()

    assert healed.code == 0, healed.output
    assert healed.changed > 0
    assert versions(node) == before
    assert not (node.root / "etc/yum.repos.d/cuda-rhel9.repo").exists()
    assert node.ready["ready"], node.reasons


def signed_by_another(node: GpuMachine) -> None:
    key = Key("another")
    rpm_repository.write(cuda(node), packages("rhel9"), key, signs_packages=True, signs_metadata=False)
    key.close()


def not_signed(node: GpuMachine) -> None:
    rpm_repository.write(cuda(node), packages("rhel9"), node.keys[0], signs_packages=False, signs_metadata=True)


def swapped_package(node: GpuMachine) -> None:
    for rpm in cuda(node).glob("nvidia-modprobe-580.178.04*.rpm"):
        rpm.write_bytes(rpm.read_bytes()[:-2] + b"xx")


def tampered_metadata(node: GpuMachine) -> None:
    """Of the toolkit, whose packages are not signed one by one."""
    listing = node.repositories / "toolkit/stable/rpm/x86_64/repodata/repomd.xml"
    listing.write_bytes(listing.read_bytes() + b"\n")


def another_key(node: GpuMachine) -> None:
    key = Key("another")
    (cuda(node) / "D42D0685.pub").write_bytes(key.public)
    key.close()
    node.run("rm /etc/pki/rpm-gpg/gpufleet-cuda.asc")


def cuda(node: GpuMachine) -> Path:
    return node.repositories / "cuda/rhel9/x86_64"


@pytest.mark.parametrize("harm", [signed_by_another, not_signed, swapped_package, tampered_metadata, another_key])
def test_a_repository_that_is_not_as_signed_is_refused_and_the_next_run_heals(
    node: GpuMachine, first: Played, harm: Callable[[GpuMachine], None]
) -> None:
    node.run("rpm --erase --nodeps nvidia-modprobe nvidia-container-toolkit; dnf -q clean all")
    harm(node)

    refused = node.play()
    there = {"nvidia-modprobe", "nvidia-container-toolkit"} & set(versions(node))
    red_hat.fill(node.repositories, node.keys)
    node.run("dnf -q clean all")
    healed = node.play()

    assert refused.code != 0
    assert there < {"nvidia-modprobe", "nvidia-container-toolkit"}, "all was taken all the same"
    assert healed.code == 0, healed.output


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"mpi_wanted": True}, "mpi: it knows no dnf"),
        ({"mpi_wanted": True, "slurm_client_configuration": "slurm.conf"}, "mpi, slurm_client: they know no dnf"),
    ],
)
def test_what_knows_apt_alone_is_refused_before_anything_is_done(
    node: GpuMachine, first: Played, asked: dict[str, Any], named: str
) -> None:
    refused = node.play(**asked)

    assert refused.code != 0
    assert named in refused.output
    assert "which Rocky 9 has: choose an image with Debian or Ubuntu" in " ".join(refused.output.split())
    assert refused.changed == 0


def test_a_reset_leaves_nothing_of_it_and_the_next_run_makes_it_again(node: GpuMachine, first: Played) -> None:
    gone = node.play("reset.yml", reset_confirmed="gpus")

    assert gone.code == 0, gone.output
    assert not [name for name in versions(node) if "nvidia" in name or name.startswith(("cuda", "datacenter"))]
    assert node.run("find /etc /usr -name *gpufleet* -not -path */sshd_config.d/*") == ""
    assert [line for line in node.run(f"cat {AUTOMATIC}").splitlines() if "kernel*" in line or "exclude" in line] == [
        "excludepkgs=glibc"
    ]
    assert node.play().code == 0
