"""What the nodes may do: each statement one purpose, and no more than it needs.

Jobs and tenants have nothing of it. A node takes on the storage role for them, each time narrowed to what one login may
do: RAM allows what both the role and that session's policy allow (STS API, AssumeRole).

Sources: RAM Reference, "OSS", "KMS" and "ECS" (which actions know a resource); ossfs 2.0, "Configure permissions".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from infra.plan.cloud_model import BUNDLES, BucketPlan
from infra.plan.iam import Resource, Statement

USE_UPLOADS = "oss:ListParts"  # going on with an upload that was cut off
LIST, KEY = "oss:ListObjects", ("kms:Decrypt", "kms:GenerateDataKey")
USE_OBJECTS = ("oss:GetObject", "oss:PutObject", "oss:DeleteObject", "oss:AbortMultipartUpload")
OWN_BUCKET = ""  # the plan's name for the bucket that holds the playbook bundle


def nodes_role(stack: str) -> str:
    """Of the nodes' role, and of its policy."""
    return f"gpufleet-{stack}-nodes"


def permissions(storage: Sequence[BucketPlan]) -> tuple[Statement, ...]:
    """The statements of the nodes' role."""
    return tuple(_statements(storage))


def storage_role_name(stack: str) -> str:
    """Of the role that sessions of jobs and tenants are narrowed from, and of its policy."""
    return f"gpufleet-{stack}-storage"


def storage_role_permissions(storage: Sequence[BucketPlan]) -> tuple[Statement, ...]:
    """The statements of that role; none without a bucket."""
    names = [item.name for item in storage]
    if not names:
        return ()
    buckets = [Resource(kind="bucket", name=name) for name in names]
    objects = [Resource(kind="objects", name=name) for name in names]
    return (
        _allow("ListBuckets", LIST, "oss:ListMultipartUploads", on=buckets),
        _allow("UseObjects", *USE_OBJECTS, USE_UPLOADS, on=objects),
        _allow("UseKey", *KEY, on=[Resource(kind="key")]),
    )


def pods_role(stack: str) -> str:
    """Of the role of a tenant's pods, and of its policy."""
    return f"gpufleet-{stack}-pods"


def use_of_own(tenant: str, storage: Sequence[BucketPlan]) -> Iterator[Statement]:
    """What a tenant's pods may do: use what lies below the tenant's name in the stack's buckets, and list just that.
    Uploads in parts are listed of one object, never of the bucket, where they would name those of others."""
    names, own = [item.name for item in storage], f"{tenant}/"
    if names:
        listed = _allow("ListOwn", LIST, on=[Resource(kind="bucket", name=name) for name in names])
        yield replace(listed, like={"oss:Prefix": f"{own}*"})
        objects = [Resource(kind="objects", name=name, prefix=own) for name in names]
        yield _allow("UseOwn", *USE_OBJECTS, USE_UPLOADS, on=objects)
        yield _allow("UseKey", *KEY, on=[Resource(kind="key")])


def _statements(storage: Sequence[BucketPlan]) -> Iterator[Statement]:
    yield _allow("ReadBundle", "oss:GetObject", on=[Resource(kind="objects", name=OWN_BUCKET, prefix=BUNDLES)])
    if names := [item.name for item in storage]:
        yield _allow("ListBuckets", LIST, on=[Resource(kind="bucket", name=name) for name in names])
        yield _allow("UseObjects", *USE_OBJECTS, on=[Resource(kind="objects", name=name) for name in names])
        yield _allow("TakeOnStorageRole", "sts:AssumeRole", on=[Resource(kind="storage-role")])
    yield _allow("UseKey", *KEY, on=[Resource(kind="key")])
    yield _allow("SeeNodes", "ecs:DescribeInstances", on=[Resource(kind="anything")])


def _allow(sid: str, *actions: str, on: Sequence[Resource]) -> Statement:
    return Statement(sid=sid, actions=actions, resources=tuple(on), equals={})
