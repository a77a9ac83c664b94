"""Rules about storage on AWS."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from infra.checks.rule import Violation, rule
from infra.checks.storage import inside
from infra.clouds.aws.plan.model import AwsEksPlan, AwsHostsPlan, AwsPlan, LustrePlan
from infra.clouds.aws.spec.cluster import AwsSpec
from infra.plan.cloud_model import BucketPlan

THROUGHPUTS = (125, 250, 500, 1000)  # MiB/s per TiB
LEAST_GIB, STEP_GIB = 1_200, 2_400
EFA_GIB_TIMES_THROUGHPUT = 4_800_000  # 19,200 GiB at 250, 4,800 GiB at 1,000


def _lustre(plan: AwsPlan) -> Iterator[tuple[str, LustrePlan]]:
    for i, item in enumerate(plan.storage):
        if isinstance(item, LustrePlan):
            yield f"cluster.storage[{i}]", item


@rule("lustre-has-a-speed-that-exists", AwsPlan)
def lustre_has_a_speed_that_exists(_: AwsSpec, plan: AwsPlan) -> Iterator[Violation]:
    """PERSISTENT_2 has four throughputs (FSx API, PerUnitStorageThroughput)."""
    for path, item in _lustre(plan):
        if item.mib_per_second_per_tib not in THROUGHPUTS:
            known = ", ".join(map(str, THROUGHPUTS))
            yield f"{path}.mib_per_second_per_tib", f"{item.mib_per_second_per_tib} is none of {known}"


@rule("lustre-has-a-size-that-exists", AwsPlan)
def lustre_has_a_size_that_exists(_: AwsSpec, plan: AwsPlan) -> Iterator[Violation]:
    """1,200 GiB or a multiple of 2,400; with EFA larger steps (FSx API, StorageCapacity; FSx User Guide, EFA)."""
    for path, item in _lustre(plan):
        step = STEP_GIB
        if item.efa and item.mib_per_second_per_tib in THROUGHPUTS:
            step = EFA_GIB_TIMES_THROUGHPUT // item.mib_per_second_per_tib
        smallest = LEAST_GIB if step == STEP_GIB else step
        if item.size_gib != smallest and (item.size_gib < step or item.size_gib % step):
            larger = smallest if item.size_gib < smallest else -(-item.size_gib // step) * step
            yield f"{path}.size_gib", f"there is no file system of {item.size_gib} GiB; the next one has {larger}"


@rule("lustre-over-efa-has-efa-nodes", AwsPlan)
def lustre_over_efa_has_efa_nodes(_: AwsSpec, plan: AwsPlan) -> Iterator[Violation]:
    """EFA reaches only clients that have it too, and fixes the throughput for good (FSx User Guide, EFA)."""
    if any(group.fabric == "efa" for group in plan.groups):
        return
    for path, item in _lustre(plan):
        if item.efa:
            yield f"{path}.efa", "no group of nodes has EFA; leave it out"


@rule("lustre-over-efa-is-set-up-on-the-nodes", AwsPlan, level="info")
def lustre_over_efa_is_set_up_on_the_nodes(_: AwsSpec, plan: AwsPlan) -> Iterator[Violation]:
    """A client speaks TCP until its EFA cards are given to Lustre (FSx User Guide, Configuring EFA clients)."""
    for path, item in _lustre(plan):
        if item.efa:
            message = "nodes mount it over TCP at first: AWS's script for EFA clients is run by hand, from Nitro v4 on"
            yield f"{path}.efa", message


@rule("lustre-is-in-the-nodes-zone", AwsPlan, level="warning")
def lustre_is_in_the_nodes_zone(_: AwsSpec, plan: AwsPlan) -> Iterator[Violation]:
    """A file system is in one zone; traffic from another is slower and is billed (FSx for Lustre User Guide)."""
    for path, item in _lustre(plan):
        first = plan.zones[0]
        if any(not name.endswith(first) for group in plan.groups for name in group.subnets):
            yield path, f"{item.name} is in {first}, and some nodes are in another zone: slower, and billed by traffic"


@rule("scratch-is-free-of-mounts", AwsPlan)
def scratch_is_free_of_mounts(_: AwsSpec, plan: AwsPlan) -> Iterator[Violation]:
    """The nodes' local disks are mounted there, and one mount hides the other (mount(8))."""
    scratches = {group.scratch.mount for group in plan.groups if group.scratch}
    for (i, item), mount in product(enumerate(plan.storage), sorted(scratches)):
        if inside(item.mount, mount) or inside(mount, item.mount):
            yield f"cluster.storage[{i}].mount", f"{item.mount} overlaps {mount}, where the nodes' local disks are"


@rule("runs-outlive-their-nodes", AwsHostsPlan, level="info")
def runs_outlive_their_nodes(_: AwsSpec, plan: AwsHostsPlan) -> Iterator[Violation]:
    """A mounted bucket neither renames nor appends, so runs are kept beside it (mountpoint-s3, doc/SEMANTICS.md)."""
    if plan.storage and all(isinstance(item, BucketPlan) for item in plan.storage):
        note = "checkpoints stay on each node's own disk, and go with it"
        yield "cluster.storage", f"has only buckets: {note}; set the job's `checkpoint.upload`, or add `kind: lustre`"


@rule("eks-storage-is-for-pods", AwsEksPlan, level="info")
def eks_storage_is_for_pods(_: AwsSpec, plan: AwsEksPlan) -> Iterator[Violation]:
    """Nodes of EKS mount nothing: pods do, by the drivers that the stack adds (EKS User Guide, Storage)."""
    for i, item in enumerate(plan.storage):
        yield f"cluster.storage[{i}].mount", f"no node mounts {item.mount}: a pod does, by a volume that names it"
