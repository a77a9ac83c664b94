"""Every play, three times over, on a machine with a GPU, disks and a tenant, who plants links wherever a login may."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import apt_repository
import installers
import plants
import pytest
from gpu_machines import Boot, GpuMachine, Hardware
from ssh_hosts import Played, make_key

from infra.clouds.aws.plan.volumes import scratch
from infra.clouds.local.nodes.site import MACHINE_USER
from infra.handover import Disks, Storage

pytestmark = pytest.mark.drill

RUNS = 3
SCRATCH = scratch(disks=2, disk_gb=1000)
T4 = Hardware(model="t4", gpu="T4", count=1, distribution="debian12")
WITH_STORAGE = replace(
    T4,
    devices={"/dev/nvme1n1": "", "/dev/nvme2n1": ""},
    disks=tuple(Disks.of(each) for each in [SCRATCH] if each),
    storage=(Storage(name="data", path="/data", kind="bucket", source="a", client="mountpoint"),),
)
PLAYS = {
    "gpu_node.yml": 0,
    "harden.yml": 0,
    "verify.yml": 0,
    "drain.yml": 0,
    "upgrade.yml": 0,
    "rollback.yml": 2,
    "reset.yml": 2,
}


@pytest.fixture(scope="module")
def node(boot: Boot, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GpuMachine]:
    with boot(WITH_STORAGE) as (found,):
        apt_repository.on_disk(found.root, "fuse")
        make_key(tmp_path_factory.mktemp("key") / "ada")
        for play in ("gpu_node.yml", "harden.yml"):
            played = run(found, play)
            assert played.code == 0, played.output
        yield found


def run(node: GpuMachine, play: str) -> Played:
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBIF4QntJLFwctl5eMdUXsB7n4Cd6abvx+FLe3oHnUCi"
    ada = {"name": "ada", "uid": 2001, "public_keys": [key], "gpus": [0], "cpu_percent": 100, "memory_gib": 1}
    return node.play(
        play,
        hardening_wanted=True,
        mounts_mountpoint_sha256=installers.write(node.repositories / "installers", "mountpoint", "1.24.0"),
        mounts_cache="/scratch/cache",
        tenants_wanted=[ada],
        tenants_share_storage=True,
    )


def test_what_is_planted_leads_no_play_outside(node: GpuMachine) -> None:
    before, codes = plants.state(node), []
    planted = 0

    for _ in range(RUNS):
        folders = {path for path in plants.writable(node, "ada", MACHINE_USER) if not path.startswith("/data")}
        planted += plants.plant(node, "ada", folders)
        codes.append({play: run(node, play).code for play in PLAYS})

    assert planted > RUNS * 100
    assert plants.changed(before, plants.state(node)) == []
    assert codes == [PLAYS] * RUNS


def test_what_stood_in_the_folder_of_an_earlier_version_leads_nowhere(node: GpuMachine) -> None:
    """It gave /var/lib/gpufleet to the login of jobs, who may have left anything there."""
    before = plants.state(node)
    node.run("mv /var/lib/gpufleet /var/lib/before && install -d -o ops /var/lib/gpufleet")
    plants.plant(node, MACHINE_USER, {"/var/lib/gpufleet"})

    healed = run(node, "gpu_node.yml")

    assert healed.code == 0, healed.output
    assert plants.changed(before, plants.state(node)) == []
    assert Path(node.root / "var/lib/gpufleet").owner() == "root"
