"""From what was asked of Alibaba Cloud to what will be; groups and the network are decided in files of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from infra.checks.layout import Refusals
from infra.clouds.alicloud.plan.ack import ack_plan
from infra.clouds.alicloud.plan.groups import AckNodes, HostNodes, group_plan
from infra.clouds.alicloud.plan.iam import nodes_role, permissions, storage_role_permissions
from infra.clouds.alicloud.plan.model import (
    AlicloudAckPlan,
    AlicloudHostsPlan,
    AlicloudPlan,
    BudgetPlan,
    CopyPlan,
    EventPlan,
    InterruptionPlan,
    KeyPlan,
)
from infra.clouds.alicloud.plan.network import AckPeers, HostPeers, access_plan, network_plan, store_plan
from infra.clouds.alicloud.plan.pricing import cost
from infra.clouds.alicloud.spec import cluster as spec
from infra.plan.cloud_model import BucketPlan, Retention
from infra.spec.cloud import Copy, ToldBudget

STACK_TAG = "gpufleet:stack"

OLD_VERSION_DAYS, ABANDONED_UPLOAD_DAYS = 30, 7
ROTATION_DAYS, DELETION_DAYS = 365, 30  # KMS: a default key rotates in 365 days and no others; pending 7 to 366
QUEUE_SECONDS = 3600  # an announcement of five minutes is of no use an hour later

# EC2 On-Demand Pricing, "Data transfer OUT from Amazon EC2 to internet", as of 2026: us-east-1, the first 10 TB of a
# month; the first 100 GB cost nothing. It is the dearest band, and an account has it once for all of its stacks.
LEAVING_USD_PER_GB, FREE_GB = 0.09, 100
BYTES_PER_GIB, BYTES_PER_GB = 2**30, 10**9

# CloudMonitor User Guide, "System events": ECS.
INTERRUPTION = EventPlan(name="spot-interruption", product="ECS", names=("Instance:PreemptibleInstanceInterruption",))
STATES = EventPlan(name="state-change", product="ECS", names=("Instance:StateChange",))


def decide(stack: str, asked: spec.AlicloudSpec) -> AlicloudPlan:
    """The plan of a stack on Alibaba Cloud, with what its layouts refused, before any rule."""
    return _hosts(stack, asked) if asked.ack is None else _kubernetes(stack, asked, asked.ack)


def _hosts(stack: str, asked: spec.AlicloudSpec) -> AlicloudHostsPlan:
    """Plain machines."""
    parts = _Parts(stack, asked, HostNodes(), HostPeers())
    return AlicloudHostsPlan(
        **parts.shared(),
        bundle=_retention(removable=True),
        permissions=permissions(parts.storage),
        storage_role_permissions=storage_role_permissions(parts.storage),
        store=store_plan(parts.groups),
    )


def _kubernetes(stack: str, asked: spec.AlicloudSpec, ack: spec.Ack) -> AlicloudAckPlan:
    """A cluster of ACK."""
    parts = _Parts(stack, asked, AckNodes(), AckPeers())
    return AlicloudAckPlan(
        **parts.shared(),
        bundle=None,
        permissions=None,
        storage_role_permissions=(),
        ack=ack_plan(stack, asked, ack, parts.groups, parts.network, parts.storage),
        store=None,
    )


class _Parts:
    """What plain machines and a cluster of ACK have in common, in the order in which they need each other."""

    def __init__(
        self, stack: str, asked: spec.AlicloudSpec, nodes: HostNodes | AckNodes, peers: HostPeers | AckPeers
    ) -> None:
        self.stack, self.asked, self.refusals = stack, asked, Refusals()
        self.groups = tuple(group_plan(asked, index, nodes, self.refusals) for index in range(len(asked.nodes)))
        self.storage = tuple(_bucket(stack, asked, item) for item in asked.storage)
        self.network = network_plan(asked, self.groups, peers, self.refusals)

    def shared(self) -> dict[str, Any]:
        """The fields of a plan."""
        asked, groups = self.asked, self.groups
        spot = any(group.market.kind == "spot" for group in groups)
        events = (*((INTERRUPTION,) if spot else ()), STATES)
        return {
            "stack": self.stack,
            "cloud": asked.cloud,
            "region": asked.region,
            "zones": asked.all_zones,
            "network": self.network,
            "access": access_plan(asked),
            "groups": groups,
            "storage": self.storage,
            "copies": tuple(map(_copy, asked.copies)),
            "key": KeyPlan(rotation_days=ROTATION_DAYS, deletion_days=DELETION_DAYS),
            "interruption": InterruptionPlan(events=events, retention_seconds=QUEUE_SECONDS),
            "budget": _budget(asked.budget),
            "tags": {STACK_TAG: self.stack},
            "cost": cost(asked, groups, self.network, self.storage),
            "findings": tuple(self.refusals.findings),
        }


def _copy(item: Copy) -> CopyPlan:
    paid = max(0.0, item.gib_per_month * BYTES_PER_GIB / BYTES_PER_GB - FREE_GB)
    return CopyPlan(
        stack=item.stack,
        storage=item.storage,
        to=item.to,
        prefix=item.prefix or "",
        gib_per_month=item.gib_per_month,
        usd_per_month=round(paid * LEAVING_USD_PER_GB, 2),
    )


def _bucket(stack: str, asked: spec.AlicloudSpec, item: spec.Bucket) -> BucketPlan:
    retention = _retention(removable=item.removable)
    bucket = BucketPlan(name=item.name, kind=item.kind, mount=item.mount, retention=retention)
    if asked.ossfs_sha256 is None:
        return bucket
    return replace(bucket, client="ossfs", options=_ossfs_options(stack, asked.region), checksum=asked.ossfs_sha256)


def _ossfs_options(stack: str, region: str) -> tuple[str, ...]:
    """ossfs 2.0, "Mount options": without allow_other only who mounts sees files; with a region requests are signed by
    version 4; no key lies on a disk. It writes in sequence and appends, and renames nothing."""
    endpoint = f"https://oss-{region}-internal.aliyuncs.com"
    return "allow_other", f"oss_endpoint={endpoint}", f"oss_region={region}", f"ram_role={nodes_role(stack)}"


def _retention(*, removable: bool) -> Retention:
    return Retention(
        old_version_days=OLD_VERSION_DAYS, abandoned_upload_days=ABANDONED_UPLOAD_DAYS, destroyable=removable
    )


def _budget(asked: ToldBudget | None) -> BudgetPlan | None:
    if asked is None or asked.monthly is None or not asked.notify:
        return None
    return BudgetPlan(monthly_cny=asked.monthly, emails=asked.notify, event=STATES)
