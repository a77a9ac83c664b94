"""Parts of a finished plan that every rented cloud has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from infra.plan.model import GroupPlan, Plan, StoragePlan

BUNDLES = "bundles/"  # of the objects in a stack's own bucket; nodes read nothing else there


@dataclass(frozen=True, kw_only=True)
class Retention:
    """How a bucket forgets, in days. destroyable: `down` removes it with all that it holds (`force_destroy`)."""

    old_version_days: int
    abandoned_upload_days: int
    destroyable: bool


@dataclass(frozen=True, kw_only=True)
class BucketPlan(StoragePlan):
    """A bucket, versioned, encrypted with the stack's key, closed to the public, reached by TLS only.

    Mounted by the cloud's own client (Mountpoint for S3, ossfs), which neither renames nor overwrites: data sets, and
    checkpoints that the job commits. Without a client no node mounts it.
    """

    retention: Retention


@dataclass(frozen=True, kw_only=True)
class StorePlan:
    """The rendezvous store of training jobs: the group whose first machine runs it, and its TCP port there."""

    group: str
    port: int


@dataclass(frozen=True, kw_only=True)
class AlarmPlan:
    """Mail addresses that are notified of costs; at least one."""

    emails: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CloudKeyPlan:
    """The stack's KMS key. deletion_days: for which it can be had back."""

    rotation_days: int
    deletion_days: int


@dataclass(frozen=True, kw_only=True)
class CloudGroupPlan(GroupPlan):
    """Equal instances of one type. role: login machine or worker. fabric_gbps: of a node's cards together.

    public_address: a node is reached from the internet. security_group: the group's own.
    """

    type: str
    role: Literal["head", "worker"]
    security_group: str
    public_address: bool
    fabric_gbps: float | None
    tags: Mapping[str, str]

    @property
    def most(self) -> int:
        """How many nodes there can ever be."""
        return self.count

    @property
    def elastic(self) -> bool:
        """Whether nodes come and go by the load of their GPUs."""
        return False

    @property
    def image_has_driver(self) -> bool:
        """Whether the cloud's own image brings the driver of the GPUs, so that no playbook installs one."""
        return False

    @property
    def paid_up_front(self) -> bool:
        """Whether its capacity is paid at once, and so is no part of an hour's price."""
        return False


@dataclass(frozen=True, kw_only=True)
class CloudPlan(Plan):
    """A cluster in one region of a cloud. zones: by name, first the one that what stands in a single zone is in.

    bundle: of the stack's own bucket, which holds the playbook bundle; None where no playbook configures nodes.
    store: None where no job runs. tags: on every resource, and on the nodes.
    """

    region: str
    zones: tuple[str, ...]
    groups: tuple[CloudGroupPlan, ...]
    bundle: Retention | None
    store: StorePlan | None
    key: CloudKeyPlan
    budget: AlarmPlan | None
    tags: Mapping[str, str]

    @property
    def remains(self) -> tuple[str, ...]:
        return (f"the key for {self.key.deletion_days} days at no cost, since its deletion can be cancelled",)
