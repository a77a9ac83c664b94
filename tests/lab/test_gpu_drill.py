"""The long campaign: a machine of each scenario, all of them damaged and healed at once, by every damage."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import pytest
from apt_repository import Server
from gpu_machines import GpuMachine, Hardware, fleet, lacking
from ssh_hosts import Played

pytestmark = [pytest.mark.drill, pytest.mark.timeout(3600)]

SCENARIOS = {
    "a100": Hardware(model="a100", gpu="A100-SXM4-80GB", count=8, distribution="debian12"),
    "v100": Hardware(model="v100", gpu="V100-SXM2-32GB", count=8, distribution="ubuntu2404"),
    "b200": Hardware(model="b200", gpu="B200", count=8, distribution="ubuntu2404"),
    "h100": Hardware(model="h100", gpu="H100-SXM5-80GB", count=8, distribution="ubuntu2404"),
    "t4": Hardware(model="t4", gpu="T4", count=1, distribution="debian12"),
}
OLD, NEW = "580.126.20", "595.91.07"
LOCKED_SECONDS = 45  # longer than a play needs to come to the packages
REFUSED_REQUESTS = 20  # more than apt repeats by itself
BY_HAND = "apt-get -qq -y --allow-downgrades --allow-change-held-packages -o APT::Ignore-Hold=true"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, GpuMachine]]:
    """A configured node of each scenario."""
    folder = tmp_path_factory.mktemp("x")
    if reason := lacking(folder, len(SCENARIOS)):
        pytest.skip(reason)
    with fleet(folder, *SCENARIOS.values()) as found:
        there = dict(zip(SCENARIOS, found, strict=True))
        played = play(there)
        assert played.code == 0, played.output
        yield there


def is_ubuntu(node: GpuMachine) -> bool:
    return (node.root / "etc/lsb-release").exists()


def revision(node: GpuMachine) -> str:
    return "ubuntu1" if is_ubuntu(node) else ""


def put(path: str, text: str) -> Callable[[GpuMachine], None]:
    """A damage: the file has this text."""

    def damage(node: GpuMachine) -> None:
        (node.root / path).write_text(text)

    return damage


def does(line: str) -> Callable[[GpuMachine], None]:
    """A damage: somebody runs this as root."""

    def damage(node: GpuMachine) -> None:
        node.run(line)

    return damage


def library_removed(node: GpuMachine) -> None:
    node.run(f"{BY_HAND} remove {'libnvidia-compute-580' if is_ubuntu(node) else 'nvidia-driver-cuda'}")


def other_version(node: GpuMachine) -> None:
    name = "nvidia-fabricmanager" if (node.root / "usr/bin/nv-fabricmanager").exists() else "nvidia-modprobe"
    node.run(f"{BY_HAND} install {name}={OLD}-1{revision(node)}")


def other_flavour(node: GpuMachine) -> None:
    node.run(f"{BY_HAND} install {module(node, '-580', 'open' if flavour(node) == 'proprietary' else 'proprietary')}")


def flavour(node: GpuMachine) -> str:
    return (node.root / "usr/share/standin/module").read_text().split()[1]


def module(node: GpuMachine, suffix: str, kind: str) -> str:
    """The package of a kernel module; Ubuntu's names end with the branch up to 580."""
    end = "-open" if kind == "open" else ""
    return f"nvidia-dkms{suffix}{end}" if is_ubuntu(node) else f"nvidia-kernel{end}-dkms"


def apt_at_work(node: GpuMachine) -> None:
    """The locks that apt has while dpkg works for it."""
    library_removed(node)
    locks = "/var/lib/dpkg/lock-frontend /var/lib/dpkg/lock"
    node.run(f"systemd-run --quiet python3 /usr/local/lib/standin/standin_apt.py {LOCKED_SECONDS} {locks}")


def repositories_down(node: GpuMachine) -> None:
    """For more requests than apt itself repeats."""
    library_removed(node)
    node.run("apt-get clean; rm -rf /var/lib/apt/lists; mkdir -p /var/lib/apt/lists/partial")
    Server.refuses = REFUSED_REQUESTS


DAMAGES: dict[str, Callable[[GpuMachine], None]] = {
    "package-removed": library_removed,
    "other-version-by-hand": other_version,
    "other-flavour-by-hand": other_flavour,
    "holds-lifted": does("apt-mark unhold $(apt-mark showhold)"),
    "dcgm-3-installed": does(f"{BY_HAND} install datacenter-gpu-manager=1:3.3.9-1"),
    "services-stopped": does("systemctl disable --now nvidia-dcgm nvidia-persistenced docker"),
    "pin-edited": put("etc/apt/preferences.d/gpufleet-nvidia", "Package: *\nPin: version 610.*\nPin-Priority: 1001\n"),
    "blacklist-removed": does("rm /etc/apt/apt.conf.d/52gpufleet-nvidia"),
    "key-replaced": put("usr/share/keyrings/gpufleet-cuda.gpg", "no key"),
    "foreign-source": put(
        "etc/apt/sources.list.d/cuda-debian12-x86_64.list",
        "deb [signed-by=/usr/share/keyrings/other.gpg] http://10.213.53.1:8099/compute/cuda/repos/debian12/x86_64/ /\n",
    ),
    "containers-edited": put("etc/cdi/nvidia.yaml", "cdiVersion: 0.7.0\n"),
    "settings-edited": put("etc/docker/daemon.json", "{}"),
    "apt-lock-held": apt_at_work,
    "repositories-down": repositories_down,
}


def play(nodes: dict[str, GpuMachine], playbook: str = "gpu_node.yml", **settings: Any) -> Played:
    """Plays on all of them."""
    return next(iter(nodes.values())).play(playbook, **settings)


def said(played: Played, node: GpuMachine) -> str:
    """What a play failed with on a node."""
    return "".join(line for line in played.output.splitlines() if line.startswith(f"fatal: [{node.name}]"))


def ready(nodes: dict[str, GpuMachine]) -> bool:
    return all(node.ready["ready"] for node in nodes.values())


def cells(round_: int, choices: Sequence[str]) -> dict[str, str]:
    """What each scenario gets in a round: after all rounds everything, and after the first few each thing once."""
    stride = -(-len(choices) // len(SCENARIOS))
    return {name: choices[(round_ + stride * i) % len(choices)] for i, name in enumerate(SCENARIOS)}


@pytest.mark.parametrize("round_", range(len(DAMAGES)))
def test_every_damage_is_healed_by_one_run(nodes: dict[str, GpuMachine], round_: int) -> None:
    damages = cells(round_, list(DAMAGES))
    for name, node in nodes.items():
        DAMAGES[damages[name]](node)

    healed = play(nodes)

    assert healed.code == 0, f"{damages}: {healed.output}"
    assert all(counts["changed"] > 0 for counts in healed.recap.values()), f"{damages}: {healed.output}"
    assert ready(nodes)


@contextmanager
def full_root(node: GpuMachine) -> Iterator[None]:
    """The machine's disk has not a byte left."""
    disk, space = node.root.parent, os.statvfs(node.root.parent)
    used = (space.f_blocks - space.f_bfree) * space.f_frsize
    subprocess.run(["mount", "-o", f"remount,size={used}", disk], check=True)
    try:
        yield
    finally:
        subprocess.run(["mount", "-o", "remount,size=50%", disk], check=True)


@contextmanager
def full_archives(node: GpuMachine) -> Iterator[None]:
    """What packages are downloaded to is a file system of its own, and full."""
    place = "/var/cache/apt/archives"
    node.run(
        f"mount -t tmpfs -o size=64k tmpfs {place} && mkdir {place}/partial; head -c 1M /dev/zero > {place}/x || :"
    )
    try:
        yield
    finally:
        node.run(f"umount {place}")


FULL: dict[str, tuple[Callable[[GpuMachine], AbstractContextManager[None]], str, str]] = {
    "root": (
        full_root,
        "disk: 0.0 GiB free at /var/lib/gpufleet, needs at least 0.5 GiB: free some or choose a larger disk",
        "No space left on device",
    ),
    "archives": (full_archives, "0.0 MiB are free at /var/cache/apt/archives: free some", "not ready"),
}


@pytest.mark.parametrize("round_", range(len(FULL)))
def test_a_full_disk_is_named_in_one_line_and_a_run_with_room_again_heals(
    nodes: dict[str, GpuMachine], round_: int
) -> None:
    disks = cells(round_, list(FULL))
    with ExitStack() as full:
        for name, node in nodes.items():
            library_removed(node)
            full.enter_context(FULL[disks[name]][0](node))
        refused, checked = play(nodes), play(nodes, "verify.yml")
    healed = play(nodes)

    for name, disk in disks.items():
        assert FULL[disk][1] in said(refused, nodes[name]), refused.output
        assert FULL[disk][2] in said(checked, nodes[name]), checked.output
    assert healed.code == 0, healed.output
    assert ready(nodes)


def test_a_driver_of_another_branch_gives_way_and_the_nodes_are_rebooted_only_when_allowed(
    nodes: dict[str, GpuMachine],
) -> None:
    for node in nodes.values():
        library = ["libnvidia-compute"] if is_ubuntu(node) else ["nvidia-driver-cuda", "libnvidia-ml1"]
        names = [*library, module(node, "", flavour(node)), "nvidia-persistenced"]
        node.run(f"{BY_HAND} install {' '.join(f'{name}={NEW}-1{revision(node)}' for name in names)}")
        node.run("rm /run/standin/loaded; nvidia-smi -L", fails=True)  # as a reboot would

    refused = play(nodes, nvidia_driver_may_reboot=False)
    allowed = play(nodes)

    for node in nodes.values():
        assert f"{NEW} is loaded and 580.178.04 installed: drain the node and" in said(refused, node)
    assert allowed.code == 0, allowed.output
    assert ready(nodes)


def test_packages_do_not_change_under_a_running_job(nodes: dict[str, GpuMachine]) -> None:
    for node in nodes.values():
        node.run("apt-mark unhold nvidia-modprobe")
        node.run(f"{BY_HAND} install nvidia-modprobe={OLD}-1{revision(node)}")
        node.computes(1)

    refused = play(nodes)
    for node in nodes.values():
        node.computes()
    healed = play(nodes)

    for node in nodes.values():
        assert "busy: process 1 computes on a GPU, and nvidia-modprobe must change" in said(refused, node)
    assert healed.code == 0, healed.output


def test_after_all_of_it_a_run_changes_nothing(nodes: dict[str, GpuMachine]) -> None:
    again = play(nodes)

    assert (again.code, again.changed) == (0, 0), again.output
