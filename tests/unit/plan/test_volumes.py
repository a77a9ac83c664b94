"""The disks of a node, within what EBS makes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.clouds.aws.plan.volumes import VolumeError, VolumeNeed, root_volume, scratch


def root(size_gib: int = 200, *, iops: int | None = None, mib_per_second: int | None = None, image_gib: int = 8):
    need = VolumeNeed(size_gib=size_gib, iops=iops, mib_per_second=mib_per_second)
    return root_volume(need, device="/dev/sda1", image_gib=image_gib)


def test_a_volume_is_encrypted_gp3_and_goes_with_its_node() -> None:
    volume = root()

    assert (volume.volume_type, volume.encrypted, volume.delete_on_termination) == ("gp3", True, True)


def test_a_volume_of_which_only_the_size_is_asked_has_the_speed_that_is_free() -> None:
    volume = root()

    assert (volume.size_gib, volume.iops, volume.mib_per_second) == (200, 3000, 125)


def test_throughput_brings_the_iops_that_it_needs() -> None:
    assert root(mib_per_second=1000).iops == 4000


@given(
    size=st.integers(-1, 70_000),
    iops=st.none() | st.integers(0, 90_000),
    speed=st.none() | st.integers(0, 2_500),
)
def test_a_volume_is_within_the_limits_of_gp3_or_refused(size: int, iops: int | None, speed: int | None) -> None:
    try:
        volume = root(size, iops=iops, mib_per_second=speed, image_gib=0)
    except VolumeError:
        return

    assert 1 <= volume.size_gib <= 65_536
    assert 3_000 <= volume.iops <= 80_000
    assert 125 <= volume.mib_per_second <= 2_000
    assert volume.iops <= max(3_000, 500 * volume.size_gib)
    assert volume.mib_per_second <= volume.iops * 0.25
    assert iops in (None, volume.iops)
    assert speed in (None, volume.mib_per_second)


@pytest.mark.parametrize(
    ("size", "iops", "speed"), [(1, 3_000, 125), (65_536, 80_000, 2_000), (160, 80_000, 2_000), (6, 3_000, 750)]
)
def test_the_limits_themselves_are_allowed(size: int, iops: int, speed: int) -> None:
    volume = root(size, iops=iops, mib_per_second=speed, image_gib=1)

    assert (volume.size_gib, volume.iops, volume.mib_per_second) == (size, iops, speed)


@pytest.mark.parametrize(
    ("size", "iops", "speed", "message"),
    [
        (0, None, None, "size_gib is 0; a gp3 volume has 1 to 65536"),
        (65_537, None, None, "size_gib is 65537; a gp3 volume has 1 to 65536"),
        (200, 2_999, None, "iops is 2999; a gp3 volume has 3000 to 80000"),
        (200, 80_001, None, "iops is 80001; a gp3 volume has 3000 to 80000"),
        (200, None, 124, "mib_per_second is 124; a gp3 volume has 125 to 2000"),
        (200, None, 2_001, "mib_per_second is 2001; a gp3 volume has 125 to 2000"),
        (200, 3_000, 1_000, "1000 MiB/s need at least 4000 IOPS, not 3000; raise iops, or leave it out"),
        (31, 15_501, None, "15501 IOPS need a gp3 volume of at least 32 GiB, not 31"),
        (20, 16_000, None, "16000 IOPS need a gp3 volume of at least 32 GiB, not 20"),
    ],
)
def test_a_volume_that_ebs_does_not_make_is_refused(size: int, iops: int, speed: int, message: str) -> None:
    with pytest.raises(VolumeError) as refusal:
        root(size, iops=iops, mib_per_second=speed, image_gib=0)

    assert str(refusal.value) == message


def test_a_root_volume_smaller_than_its_image_is_refused() -> None:
    with pytest.raises(VolumeError, match="cannot hold the machine image, which has 75 GiB"):
        root(50, image_gib=75)


def test_many_local_disks_are_one_stripe() -> None:
    planned = scratch(disks=8, disk_gb=1000)

    assert planned is not None
    assert (planned.mount, planned.size_gb, planned.raid_level, planned.chunk_kib) == ("/scratch", 8000, 0, 512)


def test_one_local_disk_is_no_stripe() -> None:
    planned = scratch(disks=1, disk_gb=900)

    assert planned is not None
    assert (planned.size_gb, planned.raid_level, planned.chunk_kib) == (900, None, None)


def test_a_type_without_local_disks_has_no_scratch() -> None:
    assert scratch(disks=0, disk_gb=0) is None
