"""Rules about what the nodes of Alibaba Cloud keep."""

from __future__ import annotations

from collections.abc import Iterator

from infra.checks.rule import Violation, rule
from infra.clouds.alicloud.plan.model import AlicloudAckPlan, AlicloudHostsPlan
from infra.clouds.alicloud.spec.cluster import AlicloudSpec


@rule("buckets-are-mounted", AlicloudHostsPlan, level="warning")
def buckets_are_mounted(_: AlicloudSpec, plan: AlicloudHostsPlan) -> Iterator[Violation]:
    """What nodes install is known by its checksum, and of ossfs's package none is published (ossfs 2.0, "Install")."""
    for i, bucket in enumerate(plan.storage):
        if not bucket.client:
            message = f"no node mounts {bucket.mount}: give `ossfs_sha256`, of the package in docs/alibaba.md"
            yield f"cluster.storage[{i}]", message


@rule("ack-storage-is-for-pods", AlicloudAckPlan, level="info")
def ack_storage_is_for_pods(_: AlicloudSpec, plan: AlicloudAckPlan) -> Iterator[Violation]:
    """Nodes of ACK mount nothing: pods do, by the plug-in that a cluster has (ACK User Guide, OSS volumes)."""
    for i, bucket in enumerate(plan.storage):
        yield f"cluster.storage[{i}].mount", f"no node mounts {bucket.mount}: a pod does, by a volume that names it"
