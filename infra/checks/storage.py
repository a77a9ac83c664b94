"""Rules about mount points, and about what outlives the nodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from infra.checks.rule import Violation, rule
from infra.plan.cloud_model import CloudPlan
from infra.plan.model import Plan, SharedPlan
from infra.spec.cluster import Cluster

# Filesystem Hierarchy Standard 3.0, chapter 3: what a system needs to be one, the homes with the keys that logins are
# known by, and /opt with the nodes' own programs. /srv, /mnt, /media are free.
SYSTEM = ("/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/proc", "/root",
          "/run", "/sbin", "/sys", "/tmp", "/usr", "/var")  # fmt: skip


@rule("mounts-do-not-overlap", Plan)
def mounts_do_not_overlap(_: Cluster, plan: Plan) -> Iterator[Violation]:
    """A mount on another one, or inside it, hides files; which of them depends on the order of mounting (mount(8))."""
    for i, storage in enumerate(plan.storage):
        for other in plan.storage[:i]:
            if inside(storage.mount, other.mount) or inside(other.mount, storage.mount):
                yield (
                    f"cluster.storage[{i}].mount",
                    f"{storage.mount} overlaps {other.mount}, the mount of {other.name}",
                )


@rule("mounts-hide-no-system-folder", Plan)
def mounts_hide_no_system_folder(_: Cluster, plan: Plan) -> Iterator[Violation]:
    """A mount over a system folder takes the system's own files away (Filesystem Hierarchy Standard 3.0)."""
    for i, storage in enumerate(plan.storage):
        if isinstance(storage, SharedPlan):
            continue
        if hidden := next((path for path in SYSTEM if inside(storage.mount, path)), None):
            message = f"{storage.mount} lies in the system's {hidden}; choose a folder such as /data"
            yield f"cluster.storage[{i}].mount", message


@rule("down-leaves-something", CloudPlan, level="info")
def down_leaves_something(_: Cluster, plan: CloudPlan) -> Iterator[Violation]:
    """No KMS deletes a key at once, and a final backup is made to stay (AWS KMS pricing; FSx API, SkipFinalBackup;
    Alibaba Cloud KMS, "Schedule key deletion": a key that is pending costs nothing)."""
    yield "cluster", f"`down` leaves {'; '.join(plan.remains)}"


def inside(path: str, folder: str) -> bool:
    """Whether a path is the folder or lies in it."""
    return PurePosixPath(path).is_relative_to(folder)
