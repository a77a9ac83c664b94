"""For each rule of AWS about storage one cluster that it passes and one that it does not, as in `rule_cases`."""

from __future__ import annotations

from clusters import BUCKET, group
from rule_cases import TWO_ZONES, Changes


def lustre(**changes: object) -> str:
    """The value of `storage`: the smallest file system, with these keys instead of its own."""
    keys = {"name": "f", "kind": "lustre", "mount": "/f", "size_gib": 1200, **changes}
    return "[{" + ", ".join(f"{key}: {value}" for key, value in keys.items()) + "}]"


CASES: dict[str, tuple[Changes, Changes, str, str, str]] = {
    "volume-exists": (
        {"nodes": group(root="{size_gib: 8}")},
        {"nodes": group(root="{size_gib: 7}")},
        "error",
        "nodes[0].root",
        "cannot hold the machine image, which has 8 GiB",
    ),
    "lustre-has-a-speed-that-exists": (
        {"storage": lustre(mib_per_second_per_tib=1000)},
        {"storage": lustre(mib_per_second_per_tib=200)},
        "error",
        "storage[0].mib_per_second_per_tib",
        "200 is none of 125, 250, 500, 1000",
    ),
    "lustre-has-a-size-that-exists": (
        {"storage": lustre(size_gib=19200, efa="true")},
        {"storage": lustre(size_gib=4800, efa="true")},
        "error",
        "storage[0].size_gib",
        "there is no file system of 4800 GiB; the next one has 19200",
    ),
    "lustre-over-efa-has-efa-nodes": (
        {"storage": lustre(size_gib=19200, efa="true")},
        {"storage": lustre(size_gib=19200, efa="true"), "nodes": group(fabric="none")},
        "error",
        "storage[0].efa",
        "no group of nodes has EFA",
    ),
    "lustre-over-efa-is-set-up-on-the-nodes": (
        {"storage": lustre()},
        {"storage": lustre(size_gib=19200, efa="true")},
        "info",
        "storage[0].efa",
        "nodes mount it over TCP at first",
    ),
    "lustre-is-in-the-nodes-zone": (
        {**TWO_ZONES, "nodes": group(zone="us-east-1a"), "storage": lustre()},
        {**TWO_ZONES, "nodes": group(zone="us-east-1b"), "storage": lustre()},
        "warning",
        "storage[0]",
        "f is in us-east-1a, and some nodes are in another zone",
    ),
    "scratch-is-free-of-mounts": (
        {"storage": lustre(mount="/scratch"), "nodes": group(type="m6i.large")},
        {"storage": lustre(mount="/scratch/f")},
        "error",
        "storage[0].mount",
        "/scratch/f overlaps /scratch, where the nodes' local disks are",
    ),
    "runs-outlive-their-nodes": (
        {"storage": f"[{BUCKET}, {lustre()[1:]}"},
        {"storage": f"[{BUCKET}]"},
        "info",
        "storage",
        "checkpoints stay on each node's own disk, and go with it",
    ),
}
