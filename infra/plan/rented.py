"""Parts of a finished plan that every rented cloud has."""

from __future__ import annotations

from dataclasses import dataclass

from infra.plan.plan import StoragePlan


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
    checkpoints that the job commits.
    """

    retention: Retention


@dataclass(frozen=True, kw_only=True)
class StorePlan:
    """The rendezvous store of training jobs: the group whose first machine runs it, and its TCP port there."""

    group: str
    port: int
