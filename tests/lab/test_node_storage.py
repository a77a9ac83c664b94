"""A machine without GPUs makes file systems of its disks, mounts buckets, shares itself out, and destroys nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator

import apt_repository
import installers
import pytest
from gpu_machines import Boot, GpuMachine, Hardware
from ssh_hosts import Played

from infra.clouds.aws.plan.cluster import BUCKET_OPTIONS
from infra.clouds.aws.plan.volumes import scratch
from infra.handover import Disks, Storage

pytestmark = pytest.mark.drill

SCRATCH = scratch(disks=2, disk_gb=1000)
KEPT = Disks(name="kept", mount="/kept", file_system="xfs", count=1, devices=("/dev/sdf",), encrypted=True)
OLD = {"/dev/nvme1n1": "", "/dev/nvme2n1": "", "/dev/sdf": ""}
HEAD = Hardware(
    model="t4",
    gpu="T4",
    count=0,
    distribution="debian12",
    devices=OLD,
    disks=(*(Disks.of(each) for each in [SCRATCH] if each), KEPT),
    storage=(
        Storage(
            name="data",
            path="/data",
            kind="bucket",
            source="a",
            client="mountpoint",
            options=BUCKET_OPTIONS["mountpoint"],
        ),
        Storage(
            name="runs",
            path="/srv/all-runs",
            kind="bucket",
            source="b",
            client="rclone",
            options=BUCKET_OPTIONS["rclone"],
        ),
        Storage(name="more", path="/more", kind="bucket", source="c", client="s3fs", options=BUCKET_OPTIONS["s3fs"]),
    ),
)
VERSION = "1.24.0"
ADA = {
    "name": "ada",
    "uid": 2001,
    "public_keys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAA ada"],
    "gpus": [1],
    "cpu_percent": 200,
    "memory_gib": 4,
}


@pytest.fixture(scope="module")
def node(boot: Boot) -> Iterator[GpuMachine]:
    with boot(HEAD) as (found,):
        apt_repository.on_disk(found.root, "cron", "at")
        found.run("apt-get -qq update && apt-get -qq -y --no-install-recommends install cron at fuse")
        played = play(found)
        assert played.code == 0, played.output
        yield found


def play(node: GpuMachine, *tenants: dict[str, object]) -> Played:
    sha256 = installers.write(node.repositories / "installers", "mountpoint", VERSION)
    return node.play(mounts_mountpoint_sha256=sha256, tenants_wanted=tenants)


def on_disks(node: GpuMachine) -> dict[str, str]:
    return json.loads((node.root / "var/lib/standin/disks.json").read_text())


def test_local_disks_are_one_stripe_and_kept_ones_are_encrypted(node: GpuMachine) -> None:
    there = on_disks(node)

    assert there["/dev/nvme1n1"] == there["/dev/nvme2n1"] == "linux_raid_member"
    assert there["/dev/md/scratch"] == there["/dev/mapper/kept"] == "xfs"
    assert there["/dev/sdf"] == "crypto_LUKS"
    assert node.run("stat -c %a /etc/gpufleet/keys /etc/gpufleet/keys/kept").split() == ["700", "400"]


def test_everything_is_mounted_with_its_options(node: GpuMachine) -> None:
    for path in ("/scratch", "/kept", "/data", "/srv/all-runs", "/more"):
        node.run(f"mountpoint --quiet {path}")
    said = {name: (node.root / f"var/lib/standin/content/{name}.options").read_text() for name in "abc"}
    assert {"allow-delete", "uid=857", "cache=/var/cache/gpufleet-mounts/data"} <= set(said["a"].split(","))
    assert {"max-cache-size=20480", "metadata-ttl=minimal"} <= set(said["a"].split(","))
    assert {"vfs_cache_mode=full", "cache_dir=/var/cache/gpufleet-mounts/runs"} <= set(said["b"].split(","))
    assert "vfs_cache_max_size=20480M" in said["b"].split(",")
    assert {"use_cache=/var/cache/gpufleet-mounts/more", "allow_other"} <= set(said["c"].split(","))
    assert node.run("stat -c %a /var/cache/gpufleet-mounts /var/cache/gpufleet-mounts/*").split() == ["700"] * 4


def test_a_second_run_changes_nothing(node: GpuMachine) -> None:
    again = play(node)

    assert (again.code, again.changed) == (0, 0), again.output


def test_what_is_unmounted_comes_back_with_what_was_on_it(node: GpuMachine) -> None:
    node.run("touch /scratch/mine && umount /scratch && systemctl stop data.mount")

    healed = play(node)

    assert healed.code == 0, healed.output
    assert node.run("ls /scratch; mountpoint /data").startswith("mine")


def test_a_disk_that_holds_something_is_refused_and_not_formatted(node: GpuMachine) -> None:
    before = on_disks(node)
    node.run("umount /scratch")
    (node.root / "var/lib/standin/disks.json").write_text(json.dumps({**before, "/dev/md/scratch": "ext4"}))

    refused = play(node)
    there = on_disks(node)
    (node.root / "var/lib/standin/disks.json").write_text(json.dumps(before))
    healed = play(node)

    assert "/dev/md/scratch holds ext4: look at it, and free it with `wipefs --all /dev/md/scratch`" in refused.output
    assert there["/dev/md/scratch"] == "ext4"
    assert healed.code == 0, healed.output


def test_a_tenant_has_its_share_and_no_gpu_but_its_own(node: GpuMachine) -> None:
    first, second = play(node, ADA), play(node, ADA)

    shown = node.run("systemctl show user-2001.slice -p CPUQuotaPerSecUSec,MemoryMax,DevicePolicy,DeviceAllow")
    assert (first.code, second.code, second.changed) == (0, 0, 0), second.output
    assert {"CPUQuotaPerSecUSec=2s", "MemoryMax=4294967296", "DevicePolicy=closed"} <= set(shown.splitlines())
    assert "/dev/nvidia1 rw" in shown
    assert "/dev/nvidia0" not in shown
    assert node.run("stat -c %U%a /home/ada /etc/gpufleet/keys.d/ada").split() == ["ada700", "root644"]
    assert node.run("grep IPAddressDeny /etc/systemd/system/user-2001.slice.d/50-gpufleet.conf").count(".") == 6


def test_a_tenant_looks_into_no_mounted_bucket_and_the_login_of_jobs_does(node: GpuMachine) -> None:
    node.run("chown gpufleet-job: /data /srv/all-runs /more")  # as the clients show what they mount
    line = "for path in /data /srv/all-runs /more; do setpriv --reuid {} --clear-groups ls $path; done"

    of_tenant, of_jobs = (node.run(line.format(login), fails=True) for login in ("ada", "gpufleet-job"))

    assert (of_tenant.count("Permission denied"), of_jobs) == (3, "")


def test_tenants_beside_storage_that_every_login_reads_are_refused_unless_they_share_it(node: GpuMachine) -> None:
    node.run("chmod 755 /srv/all-runs")

    refused, shared = node.play(tenants_wanted=[ADA]), node.play(tenants_wanted=[ADA], tenants_share_storage=True)
    node.run("chmod 750 /srv/all-runs")

    assert "tenants_wanted: every login of the node reads /srv/all-runs: restart" in refused.output
    assert shared.code == 0, shared.output


def test_a_tenant_starts_nothing_outside_of_its_share(node: GpuMachine) -> None:
    played = play(node, ADA)

    assert played.code == 0, played.output
    assert "not allowed to use this program" in node.run("runuser -u ada -- crontab -l", fails=True)
    assert "do not have permission to use at" in node.run("runuser -u ada -- at -l", fails=True)
    assert "no crontab for ops" in node.run("runuser -u ops -- crontab -l", fails=True)


def test_a_reset_takes_the_mounts_away_and_leaves_the_disks_with_their_keys(node: GpuMachine) -> None:
    before = on_disks(node)

    gone = node.play("reset.yml", reset_confirmed="gpus")
    units = node.run("ls /etc/systemd/system /usr/sbin; findmnt --list --noheadings --output TARGET")

    assert gone.code == 0, gone.output
    assert not {"data.mount", "mount.mount-s3", "mount.rclone", "/data", "/more"} & set(units.split())
    assert on_disks(node) == before
    assert node.run("ls /etc/gpufleet/keys") == "kept"
