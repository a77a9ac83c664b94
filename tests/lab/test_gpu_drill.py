"""The long campaign: a machine of each scenario, all of them damaged and healed at once, by every damage."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import pytest
from damages import (
    BY_HAND,
    DAMAGES,
    OF_PACKAGES,
    OF_SETTINGS,
    OLD,
    flavour,
    has_gpus,
    is_ubuntu,
    kept,
    module,
    remove_package,
    revision,
)
from gpu_machines import Boot, GpuMachine
from scenarios import SCENARIOS
from ssh_hosts import Played

from infra.clouds.local.nodes.site import MACHINE_USER

pytestmark = pytest.mark.drill

NEW = "595.91.07"
SEED = 20261122
TASKS = {True: 30, False: 12}  # of a run that heals a node with GPUs, and one without; both have more
PAIRS = list(zip(OF_PACKAGES, OF_SETTINGS, strict=True))


@pytest.fixture(scope="module")
def nodes(boot: Boot) -> Iterator[dict[str, GpuMachine]]:
    """A configured node of each scenario."""
    with boot(*SCENARIOS.values()) as found:
        there = dict(zip(SCENARIOS, found, strict=True))
        played = play(there)
        assert played.code == 0, played.output
        yield there


def play(nodes: dict[str, GpuMachine], playbook: str = "gpu_node.yml", **settings: Any) -> Played:
    """Plays on all of them at once, for where all fail the next ones would not be begun."""
    first = next(iter(nodes.values()))
    return first.play(playbook, **{"gpu_node_at_once": "100%", "doca_ofed_key": first.keys[2].fingerprint, **settings})


def said(played: Played, node: GpuMachine) -> str:
    """What a play failed with on a node."""
    return "".join(line for line in played.output.splitlines() if line.startswith(f"fatal: [{node.name}]"))


def ready(nodes: dict[str, GpuMachine]) -> bool:
    return all(node.ready["ready"] for node in nodes.values())


def cells(round_: int, choices: int) -> dict[str, int]:
    """Which of so many choices each scenario gets in a round: after as many rounds, each of them."""
    return {name: (round_ + i) % choices for i, name in enumerate(SCENARIOS)}


def with_gpus(nodes: dict[str, GpuMachine]) -> list[GpuMachine]:
    return [node for node in nodes.values() if has_gpus(node)]


def all_kept(nodes: dict[str, GpuMachine]) -> dict[str, str]:
    """In one table, so that a failed comparison shows the rows that differ."""
    return {f"{name}: {what}": there for name, node in nodes.items() for what, there in kept(node).items()}


def test_a_second_run_changes_nothing(nodes: dict[str, GpuMachine]) -> None:
    again = play(nodes)

    assert (again.code, again.changed) == (0, 0), again.output


@pytest.mark.parametrize("round_", range(len(PAIRS)))
def test_every_damage_is_healed_by_one_run(
    nodes: dict[str, GpuMachine], round_: int, record_property: Callable[[str, object], None]
) -> None:
    """Two at a time, of packages and of settings: what puts the ones right writes nothing of the others."""
    before, pairs = all_kept(nodes), cells(round_, len(PAIRS))
    hit = {name: [each for each in PAIRS[pairs[name]] if DAMAGES[each].can_hit(node)] for name, node in nodes.items()}
    record_property("pairs", sum(map(len, hit.values())))
    for name, damages in hit.items():
        for each in damages:
            DAMAGES[each].do(nodes[name])

    healed = play(nodes)

    assert healed.code == 0, f"{hit}: {healed.output}"
    assert all_kept(nodes) == before, hit
    assert all(healed.recap[nodes[name].name]["changed"] > 0 for name, damages in hit.items() if damages), hit
    assert ready(nodes)


def test_a_run_that_lost_its_connection_is_finished_by_the_next(nodes: dict[str, GpuMachine]) -> None:
    before, chance = all_kept(nodes), random.Random(SEED)
    for node in nodes.values():
        remove_package(node)
        task = chance.randint(1, TASKS[has_gpus(node)])
        node.run(f"python3 /usr/local/lib/standin/standin_cut.py {task} {MACHINE_USER}")

    broken, healed = play(nodes), play(nodes)

    assert all(counts["unreachable"] == 1 for counts in broken.recap.values()), broken.output
    assert healed.code == 0, healed.output
    assert all_kept(nodes) == before
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


FULL: tuple[tuple[Callable[[GpuMachine], AbstractContextManager[None]], str, str], ...] = (
    (
        full_root,
        "disk: 0.0 GiB free at /var/lib/gpufleet, needs at least 0.5 GiB: free some or choose a larger disk",
        "No space left on device",
    ),
    (full_archives, "0.0 MiB are free at /var/cache/apt/archives: free some", "not ready"),
)


@pytest.mark.parametrize("round_", range(len(FULL)))
def test_a_full_disk_is_named_in_one_line_and_a_run_with_room_again_heals(
    nodes: dict[str, GpuMachine], round_: int
) -> None:
    disks, before = cells(round_, len(FULL)), all_kept(nodes)
    with ExitStack() as full:
        for name, node in nodes.items():
            remove_package(node)
            full.enter_context(FULL[disks[name]][0](node))
        refused, checked = play(nodes), play(nodes, "verify.yml")
    healed = play(nodes)

    for name, node in nodes.items():
        _, told, found = FULL[disks[name]]
        assert told in said(refused, node), refused.output
        assert found in said(checked, node) or not has_gpus(node), checked.output  # a head works without its package
    assert healed.code == 0, healed.output
    assert all_kept(nodes) == before
    assert ready(nodes)


def test_a_driver_of_another_branch_gives_way_and_the_nodes_are_rebooted_only_when_allowed(
    nodes: dict[str, GpuMachine],
) -> None:
    before = all_kept(nodes)
    for node in with_gpus(nodes):
        library = ["libnvidia-compute"] if is_ubuntu(node) else ["nvidia-driver-cuda", "libnvidia-ml1"]
        names = [*library, module(node, "", flavour(node)), "nvidia-persistenced"]
        node.run(f"{BY_HAND} install {' '.join(f'{name}={NEW}-1{revision(node)}' for name in names)}")
        node.run("rm /run/standin/loaded; nvidia-smi -L", fails=True)  # as a reboot would

    refused = play(nodes, nvidia_driver_may_reboot=False)
    allowed = play(nodes)

    for node in with_gpus(nodes):
        assert f"{NEW} is loaded and 580.178.04 installed: drain the node and" in said(refused, node), refused.output
    assert allowed.code == 0, allowed.output
    assert all_kept(nodes) == before
    assert ready(nodes)


def test_packages_do_not_change_under_a_running_job(nodes: dict[str, GpuMachine]) -> None:
    for node in with_gpus(nodes):
        node.run("apt-mark unhold nvidia-modprobe")
        node.run(f"{BY_HAND} install nvidia-modprobe={OLD}-1{revision(node)}")
        node.computes(1)

    refused = play(nodes)
    for node in with_gpus(nodes):
        node.computes()
    healed = play(nodes)

    for node in with_gpus(nodes):
        assert "busy: process 1 computes on a GPU, and nvidia-modprobe must change" in said(refused, node)
    assert healed.code == 0, healed.output


def test_after_all_of_it_a_run_changes_nothing(nodes: dict[str, GpuMachine]) -> None:
    again = play(nodes)

    assert (again.code, again.changed) == (0, 0), again.output
