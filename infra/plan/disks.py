"""The local disks of a node, joined into one file system."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

RAID_CHUNK_KIB = 512  # mdadm's own default


@dataclass(frozen=True, kw_only=True)
class Scratch:
    """Local disks as one file system. Its content is lost when the node stops: nothing may live only here.

    model: the NVMe model by which the node finds its disks. raid_level: 0 for a stripe, None where one disk needs none.
    chunk_kib: of the stripe. size_gb: decimal gigabytes, before the file system.
    """

    mount: str
    model: str
    disks: int
    size_gb: int
    raid_level: Literal[0] | None
    chunk_kib: int | None
    file_system: Literal["xfs"] = "xfs"
