"""The disks of a node: encrypted gp3 volumes that die with it, and its local disks striped into scratch space.

Sources: Amazon EBS User Guide, "General Purpose SSD volumes" with the limits of September 2025 (AWS What's New, "Amazon
EBS increases size and provisioned performance of gp3 volumes"); EC2 User Guide, "Instance store volumes" (gone with the
instance; NVMe ones are encrypted by the hardware) and "RAID configuration"; mdadm(8).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from infra.plan.disks import RAID_CHUNK_KIB, Scratch
from infra.plan.layout import LayoutError

GP3_GIB = range(1, 65_536 + 1)
GP3_IOPS = range(3_000, 80_000 + 1)
GP3_MIB_PER_SECOND = range(125, 2_000 + 1)
GP3_IOPS_PER_GIB = 500  # beyond the 3,000 that every volume has
GP3_IOPS_PER_MIB_PER_SECOND = 4

INSTANCE_STORE_MODEL = (
    "Amazon EC2 NVMe Instance Storage"  # what the disks call themselves: nvme list, /sys/block/*/device/model
)


class VolumeError(LayoutError):
    """A volume that EBS does not make."""

    rule = "volume-exists"


@dataclass(frozen=True, kw_only=True)
class ImageDisks:
    """What a machine image says of disks: the device it boots from, its size, and where local disks are mounted."""

    root_device: str
    gib: int
    scratch: str


@dataclass(frozen=True, kw_only=True)
class VolumeNeed:
    """Requirements on a volume; a speed of None means the minimum."""

    size_gib: int
    iops: int | None = None
    mib_per_second: int | None = None


@dataclass(frozen=True, kw_only=True)
class Volume:
    """A block device mapping to declare. A node is never repaired by hand, so what it leaves behind would only cost."""

    device: str
    size_gib: int
    iops: int
    mib_per_second: int
    volume_type: Literal["gp3"] = "gp3"
    encrypted: Literal[True] = True
    delete_on_termination: Literal[True] = True


def root_volume(need: VolumeNeed, *, device: str, image_gib: int) -> Volume:
    """The volume that a node boots from. device and image_gib: the root device name and size of the machine image.

    Raises VolumeError.
    """
    if need.size_gib < image_gib:
        raise VolumeError(
            f"a root volume of {need.size_gib} GiB cannot hold the machine image, which has {image_gib} GiB"
        )
    return _gp3(need, device)


def scratch(*, disks: int, disk_gb: int, mount: str = "/scratch") -> Scratch | None:
    """Scratch space on a type's equal local disks; None for a type without any."""
    if disks == 0:
        return None
    striped = disks > 1
    return Scratch(
        mount=mount,
        model=INSTANCE_STORE_MODEL,
        disks=disks,
        size_gb=disks * disk_gb,
        raid_level=0 if striped else None,
        chunk_kib=RAID_CHUNK_KIB if striped else None,
    )


def _gp3(need: VolumeNeed, device: str) -> Volume:
    speed = GP3_MIB_PER_SECOND.start if need.mib_per_second is None else need.mib_per_second
    for_speed = max(GP3_IOPS.start, speed * GP3_IOPS_PER_MIB_PER_SECOND)
    iops = for_speed if need.iops is None else need.iops
    _check("size_gib", need.size_gib, GP3_GIB)
    _check("mib_per_second", speed, GP3_MIB_PER_SECOND)
    _check("iops", iops, GP3_IOPS)
    if iops < for_speed:
        raise VolumeError(f"{speed} MiB/s need at least {for_speed} IOPS, not {iops}; raise iops, or leave it out")
    if iops > max(GP3_IOPS.start, need.size_gib * GP3_IOPS_PER_GIB):
        least = -(-iops // GP3_IOPS_PER_GIB)
        raise VolumeError(f"{iops} IOPS need a gp3 volume of at least {least} GiB, not {need.size_gib}")
    return Volume(device=device, size_gib=need.size_gib, iops=iops, mib_per_second=speed)


def _check(key: str, value: int, allowed: range) -> None:
    if value not in allowed:
        raise VolumeError(f"{key} is {value}; a gp3 volume has {allowed.start} to {allowed.stop - 1}")
