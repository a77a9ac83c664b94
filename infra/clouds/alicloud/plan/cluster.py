"""Plans a cluster on Alibaba Cloud from its spec; groups and the network are planned in files of their own."""

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
from infra.clouds.alicloud.spec import cluster as specs
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


def decide(stack: str, spec: specs.AlicloudSpec) -> AlicloudPlan:
    """The plan of a stack on Alibaba Cloud, with what its layouts refused, before any rule."""
    return _hosts(stack, spec) if spec.ack is None else _kubernetes(stack, spec, spec.ack)


def _hosts(stack: str, spec: specs.AlicloudSpec) -> AlicloudHostsPlan:
    """Plain machines."""
    parts = _Parts(stack, spec, HostNodes(), HostPeers())
    return AlicloudHostsPlan(
        **parts.shared(),
        bundle=_retention(removable=True),
        permissions=permissions(parts.storage),
        storage_role_permissions=storage_role_permissions(parts.storage),
        store=store_plan(parts.groups),
    )


def _kubernetes(stack: str, spec: specs.AlicloudSpec, ack: specs.Ack) -> AlicloudAckPlan:
    """A cluster of ACK."""
    parts = _Parts(stack, spec, AckNodes(), AckPeers())
    return AlicloudAckPlan(
        **parts.shared(),
        bundle=None,
        permissions=None,
        storage_role_permissions=(),
        ack=ack_plan(stack, spec, ack, parts.groups, parts.network, parts.storage),
        store=None,
    )


class _Parts:
    """What plain machines and a cluster of ACK have in common, in the order in which they need each other."""

    def __init__(
        self, stack: str, spec: specs.AlicloudSpec, nodes: HostNodes | AckNodes, peers: HostPeers | AckPeers
    ) -> None:
        self.stack, self.spec, self.refusals = stack, spec, Refusals()
        self.groups = tuple(group_plan(spec, index, nodes, self.refusals) for index in range(len(spec.nodes)))
        self.storage = tuple(_bucket(stack, spec, item) for item in spec.storage)
        self.network = network_plan(spec, self.groups, peers, self.refusals)

    def shared(self) -> dict[str, Any]:
        """The fields of a plan."""
        spec, groups = self.spec, self.groups
        spot = any(group.market.kind == "spot" for group in groups)
        events = (*((INTERRUPTION,) if spot else ()), STATES)
        return {
            "stack": self.stack,
            "cloud": spec.cloud,
            "region": spec.region,
            "zones": spec.all_zones,
            "network": self.network,
            "access": access_plan(spec),
            "groups": groups,
            "storage": self.storage,
            "copies": tuple(map(_copy, spec.copies)),
            "key": KeyPlan(rotation_days=ROTATION_DAYS, deletion_days=DELETION_DAYS),
            "interruption": InterruptionPlan(events=events, retention_seconds=QUEUE_SECONDS),
            "budget": _budget(spec.budget),
            "tags": {STACK_TAG: self.stack},
            "cost": cost(spec, groups, self.network, self.storage),
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


def _bucket(stack: str, spec: specs.AlicloudSpec, item: specs.Bucket) -> BucketPlan:
    retention = _retention(removable=item.removable)
    bucket = BucketPlan(name=item.name, kind=item.kind, mount=item.mount, retention=retention)
    if spec.ossfs_sha256 is None:
        return bucket
    return replace(bucket, client="ossfs", options=_ossfs_options(stack, spec.region), checksum=spec.ossfs_sha256)


def _ossfs_options(stack: str, region: str) -> tuple[str, ...]:
    """ossfs 2.0, "Mount options": without allow_other only who mounts sees files; with a region requests are signed by
    version 4; no key lies on a disk. It writes in sequence and appends, and renames nothing."""
    endpoint = f"https://oss-{region}-internal.aliyuncs.com"
    return "allow_other", f"oss_endpoint={endpoint}", f"oss_region={region}", f"ram_role={nodes_role(stack)}"


def _retention(*, removable: bool) -> Retention:
    return Retention(
        old_version_days=OLD_VERSION_DAYS, abandoned_upload_days=ABANDONED_UPLOAD_DAYS, destroyable=removable
    )


def _budget(spec: ToldBudget | None) -> BudgetPlan | None:
    if spec is None or spec.monthly is None or not spec.notify:
        return None
    return BudgetPlan(monthly_cny=spec.monthly, emails=spec.notify, event=STATES)
