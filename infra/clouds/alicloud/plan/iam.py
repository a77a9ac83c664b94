"""What the nodes may do: each statement one purpose, and no more than it needs.

Sources: RAM Reference, "OSS", "KMS" and "ECS" (which actions know a resource); ossfs 2.0, "Configure permissions".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from infra.plan.cloud_model import BUNDLES, BucketPlan
from infra.plan.iam import Resource, Statement

OWN_BUCKET = ""  # the plan's name for the bucket that holds the playbook bundle


def nodes_role(stack: str) -> str:
    """Of the nodes' role, and of its policy."""
    return f"gpufleet-{stack}-nodes"


def permissions(storage: Sequence[BucketPlan]) -> tuple[Statement, ...]:
    """The statements of the nodes' role."""
    return tuple(_statements(storage))


def _statements(storage: Sequence[BucketPlan]) -> Iterator[Statement]:
    yield _allow("ReadBundle", "oss:GetObject", on=[Resource(kind="objects", name=OWN_BUCKET, prefix=BUNDLES)])
    if names := [item.name for item in storage]:
        objects = ("oss:GetObject", "oss:PutObject", "oss:DeleteObject", "oss:AbortMultipartUpload")
        yield _allow("ListBuckets", "oss:ListObjects", on=[Resource(kind="bucket", name=name) for name in names])
        yield _allow("UseObjects", *objects, on=[Resource(kind="objects", name=name) for name in names])
    yield _allow("UseKey", "kms:Decrypt", "kms:GenerateDataKey", on=[Resource(kind="key")])
    yield _allow("SeeNodes", "ecs:DescribeInstances", on=[Resource(kind="anything")])


def _allow(sid: str, *actions: str, on: Sequence[Resource]) -> Statement:
    return Statement(sid=sid, actions=actions, resources=tuple(on), equals={})
