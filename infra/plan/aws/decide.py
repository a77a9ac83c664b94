"""From what was asked of AWS to what will be; groups and the network are decided in files of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from infra.plan.aws.capacity import CapacityBlock, Elastic, Managed, Spot
from infra.plan.aws.eks import eks_permissions, eks_plan
from infra.plan.aws.groups import group_plan, subnet_name
from infra.plan.aws.network import LUSTRE_GROUP, access_plan, network_plan, store_plan
from infra.plan.aws.permissions import permissions, storage_role_permissions
from infra.plan.aws.plan import (
    AwsGroupPlan,
    AwsPlan,
    BudgetPlan,
    EventPlan,
    InterruptionPlan,
    KeyPlan,
    LustrePlan,
)
from infra.plan.aws.price import cost
from infra.plan.refusals import Refusals
from infra.plan.rented import BucketPlan, Retention
from infra.spec import aws as spec

STACK_TAG = "gpufleet:stack"

OLD_VERSION_DAYS, ABANDONED_UPLOAD_DAYS = 30, 7
ROTATION_DAYS, DELETION_DAYS = 365, 30  # KMS: 90 to 2560, and 7 to 30
ALERT_PERCENT = (50, 80, 100)
QUEUE_SECONDS = 3600  # an announcement of two minutes is of no use an hour later

# Mountpoint for S3, "Configuring Mountpoint": else only who mounts sees files, and nobody removes any. FSx for Lustre
# User Guide, "Mounting your file system automatically".
# Root and the login of jobs, who owns what is mounted, see it; other logins reach the bucket by sessions of their own.
BUCKET_OPTIONS = {
    "mountpoint": ("allow-other", "dir-mode=0750", "file-mode=0640", "allow-delete"),
    "s3fs": ("allow_other", "umask=0027", "mp_umask=0027"),
    "rclone": ("default_permissions", "umask=027"),
}
LUSTRE_OPTIONS = ("relatime", "flock")

# EC2 User Guide: "Spot Instance interruption notices", "EC2 instance rebalance recommendations", "Monitor Capacity
# Blocks using EventBridge", "Instance state changes"; AWS Health User Guide (scheduled maintenance).
SPOT_EVENTS = {
    "spot-interruption": ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
    "rebalance": ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
}
BLOCK_EVENTS = {"block-expiration": ("aws.ec2", "Capacity Block Reservation Expiration Warning")}
ANY_EVENTS = {
    "state-change": ("aws.ec2", "EC2 Instance State-change Notification"),
    "health": ("aws.health", "AWS Health Event"),
}


def decide(stack: str, asked: spec.AwsSpec) -> AwsPlan:
    """The plan of a stack on AWS, with what its layouts refused, before any rule."""
    refusals = Refusals()
    groups = tuple(group_plan(stack, asked, index, refusals) for index in range(len(asked.nodes)))
    storage = tuple(_storage(asked, item) for item in asked.storage)
    file_systems = [item for item in storage if isinstance(item, LustrePlan)]
    network = network_plan(asked, groups, file_systems, refusals)
    return AwsPlan(
        stack=stack,
        cloud=asked.cloud,
        region=asked.region,
        zones=asked.all_zones,
        network=network,
        access=access_plan(asked),
        groups=groups,
        storage=storage,
        bundle=_retention(removable=True) if asked.eks is None else None,
        key=_key(asked.region, groups, file_systems),
        permissions=permissions(asked, groups, storage) if asked.eks is None else eks_permissions(asked),
        storage_role_permissions=() if asked.eks else storage_role_permissions(asked.region, storage),
        eks=eks_plan(stack, asked, groups, storage),
        store=store_plan(groups) if asked.eks is None else None,
        interruption=InterruptionPlan(events=tuple(_events(groups)), retention_seconds=QUEUE_SECONDS),
        budget=_budget(asked.budget),
        tags={STACK_TAG: stack},
        cost=cost(asked, groups, network, storage),
        findings=tuple(refusals.findings),
    )


def _storage(asked: spec.AwsSpec, item: spec.Storage) -> BucketPlan | LustrePlan:
    match item:
        case spec.Bucket():
            retention = _retention(removable=item.removable)
            return BucketPlan(
                name=item.name,
                kind=item.kind,
                mount=item.mount,
                client=item.client if asked.eks is None else "",
                options=BUCKET_OPTIONS[item.client],
                retention=retention,
            )
        case spec.Lustre():
            return LustrePlan(
                name=item.name,
                kind=item.kind,
                mount=item.mount,
                client="lustre" if asked.eks is None else "",
                options=LUSTRE_OPTIONS,
                size_gib=item.size_gib,
                mib_per_second_per_tib=item.mib_per_second_per_tib,
                subnet=subnet_name("private", asked.all_zones[0]),
                security_group=LUSTRE_GROUP,
                bucket=item.bucket,
                efa=item.efa,
                metadata_mode="AUTOMATIC" if item.efa else None,
                final_backup=item.bucket is None,  # what a bucket holds needs no backup
            )


def _retention(*, removable: bool) -> Retention:
    return Retention(
        old_version_days=OLD_VERSION_DAYS, abandoned_upload_days=ABANDONED_UPLOAD_DAYS, destroyable=removable
    )


def _key(region: str, groups: Sequence[AwsGroupPlan], file_systems: Sequence[LustrePlan]) -> KeyPlan:
    """Who writes with it beside the nodes: the flow log, and EventBridge into the queue."""
    return KeyPlan(
        rotation_days=ROTATION_DAYS,
        deletion_days=DELETION_DAYS,
        services=(f"logs.{region}.amazonaws.com", "events.amazonaws.com"),
        scaling_grant=any(isinstance(group.capacity, Elastic | Managed) for group in groups),
        repository_grant=any(item.bucket is not None for item in file_systems),
    )


def _events(groups: Sequence[AwsGroupPlan]) -> Iterator[EventPlan]:
    markets = {type(group.market) for group in groups}
    wanted = {
        **(SPOT_EVENTS if Spot in markets else {}),
        **(BLOCK_EVENTS if CapacityBlock in markets else {}),
        **ANY_EVENTS,
    }
    for name, (source, detail_type) in wanted.items():
        yield EventPlan(name=name, source=source, detail_type=detail_type)


def _budget(asked: spec.ToldBudget | None) -> BudgetPlan | None:
    if asked is None or asked.monthly is None or not asked.notify:
        return None
    return BudgetPlan(monthly_usd=asked.monthly, thresholds_percent=ALERT_PERCENT, emails=asked.notify, tag=STACK_TAG)
