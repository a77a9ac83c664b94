"""Plans a cluster on AWS from its spec; groups and the network are planned in files of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from infra.checks.layout import Refusals
from infra.clouds.aws.plan.capacity import CapacityBlock, Elastic, ManagedPool, Spot
from infra.clouds.aws.plan.eks import eks_permissions, eks_plan
from infra.clouds.aws.plan.eks_nodes import EksNodes
from infra.clouds.aws.plan.groups import HostNodes, group_plan, subnet_name
from infra.clouds.aws.plan.iam import permissions, storage_role_permissions
from infra.clouds.aws.plan.model import (
    AwsEksPlan,
    AwsGroupPlan,
    AwsHostsPlan,
    AwsPlan,
    BudgetPlan,
    EventPlan,
    InterruptionPlan,
    KeyPlan,
    LustrePlan,
)
from infra.clouds.aws.plan.network import LUSTRE_GROUP, EksPeers, HostPeers, access_plan, network_plan, store_plan
from infra.clouds.aws.plan.pricing import cost
from infra.clouds.aws.spec import cluster as specs
from infra.clouds.aws.spec.eks import Eks
from infra.plan.cloud_model import BucketPlan, Retention

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


def decide(stack: str, spec: specs.AwsSpec) -> AwsPlan:
    """The plan of a stack on AWS, with what its layouts refused, before any rule."""
    return _hosts(stack, spec) if spec.eks is None else _kubernetes(stack, spec, spec.eks)


def _hosts(stack: str, spec: specs.AwsSpec) -> AwsHostsPlan:
    """Plain machines."""
    parts = _Parts(stack, spec, HostNodes(stack=stack, images=spec.images), HostPeers())
    return AwsHostsPlan(
        **parts.shared(user="ubuntu"),
        bundle=_retention(removable=True),
        permissions=permissions(spec, parts.groups, parts.storage),
        storage_role_permissions=storage_role_permissions(spec.region, parts.storage),
        store=store_plan(parts.groups),
    )


def _kubernetes(stack: str, spec: specs.AwsSpec, eks: Eks) -> AwsEksPlan:
    """A cluster of EKS."""
    parts = _Parts(stack, spec, EksNodes(version=eks.version), EksPeers())
    return AwsEksPlan(
        **parts.shared(user="ec2-user"),
        bundle=None,
        permissions=eks_permissions(spec),
        storage_role_permissions=(),
        eks=eks_plan(stack, spec, eks, parts.groups, parts.storage),
        store=None,
    )


class _Parts:
    """What plain machines and a cluster of EKS have in common, in the order in which they need each other."""

    def __init__(
        self, stack: str, spec: specs.AwsSpec, nodes: HostNodes | EksNodes, peers: HostPeers | EksPeers
    ) -> None:
        self.stack, self.spec, self.peers, self.refusals = stack, spec, peers, Refusals()
        self.groups = tuple(group_plan(spec, index, nodes, self.refusals) for index in range(len(spec.nodes)))
        self.storage = tuple(_storage(spec, item, mounted=nodes.mounts_storage) for item in spec.storage)

    def shared(self, *, user: str) -> dict[str, Any]:
        """The fields of a plan. user: the login name of the machine image."""
        spec, groups = self.spec, self.groups
        file_systems = [item for item in self.storage if isinstance(item, LustrePlan)]
        network = network_plan(spec, groups, file_systems, self.peers, self.refusals)
        return {
            "stack": self.stack,
            "cloud": spec.cloud,
            "region": spec.region,
            "zones": spec.all_zones,
            "network": network,
            "access": access_plan(spec, user),
            "groups": groups,
            "storage": self.storage,
            "key": _key(spec.region, groups, file_systems),
            "interruption": InterruptionPlan(events=tuple(_events(groups)), retention_seconds=QUEUE_SECONDS),
            "budget": _budget(spec.budget),
            "tags": {STACK_TAG: self.stack},
            "cost": cost(spec, groups, network, self.storage),
            "findings": tuple(self.refusals.findings),
        }


def _storage(spec: specs.AwsSpec, item: specs.Storage, *, mounted: bool) -> BucketPlan | LustrePlan:
    match item:
        case specs.Bucket():
            retention = _retention(removable=item.removable)
            return BucketPlan(
                name=item.name,
                kind=item.kind,
                mount=item.mount,
                client=item.client if mounted else "",
                options=BUCKET_OPTIONS[item.client],
                retention=retention,
            )
        case specs.Lustre():
            return LustrePlan(
                name=item.name,
                kind=item.kind,
                mount=item.mount,
                client="lustre" if mounted else "",
                options=LUSTRE_OPTIONS,
                size_gib=item.size_gib,
                mib_per_second_per_tib=item.mib_per_second_per_tib,
                subnet=subnet_name("private", spec.all_zones[0]),
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
        scaling_grant=any(isinstance(group.capacity, Elastic | ManagedPool) for group in groups),
        repository_grant=any(item.bucket is not None for item in file_systems),
    )


def _events(groups: Sequence[AwsGroupPlan]) -> Iterator[EventPlan]:
    markets = {type(group.market) for group in groups}
    event_types = {
        **(SPOT_EVENTS if Spot in markets else {}),
        **(BLOCK_EVENTS if CapacityBlock in markets else {}),
        **ANY_EVENTS,
    }
    for name, (source, detail_type) in event_types.items():
        yield EventPlan(name=name, source=source, detail_type=detail_type)


def _budget(spec: specs.ToldBudget | None) -> BudgetPlan | None:
    if spec is None or spec.monthly is None or not spec.notify:
        return None
    return BudgetPlan(monthly_usd=spec.monthly, thresholds_percent=ALERT_PERCENT, emails=spec.notify, tag=STACK_TAG)
