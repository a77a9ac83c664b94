"""What the nodes may do: each statement one purpose, and no more than it needs.

Sources: Service Authorization Reference (which actions know a resource); mountpoint-s3, "Configuring Mountpoint" (what
it calls); Systems Manager User Guide, "Verify or create an IAM role with Session Manager permissions".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from infra.plan.aws.groups import METRIC_NAMESPACE
from infra.plan.aws.plan import BucketPlan, LustrePlan, Resource, Statement
from infra.spec.aws import AwsSpec

BUNDLE = ""
ANYTHING = (Resource(kind="anything"),)
KEY = (Resource(kind="key"),)


def permissions(asked: AwsSpec, storage: Sequence[BucketPlan | LustrePlan]) -> tuple[Statement, ...]:
    """The statements of the nodes' role."""
    buckets = [item.name for item in storage if isinstance(item, BucketPlan)]
    return (
        _allow("ReadBundle", "s3:GetObject", on=[Resource(kind="objects", name=BUNDLE)]),
        *_buckets(buckets),
        _allow("UseKey", "kms:Decrypt", "kms:GenerateDataKey", on=KEY),
        _allow("SeeNodes", "ec2:DescribeInstances", "ec2:DescribeTags", on=ANYTHING),
        _allow("SendLoad", "cloudwatch:PutMetricData", on=ANYTHING, equals={"cloudwatch:namespace": METRIC_NAMESPACE}),
        *([SESSIONS] if asked.access.ssm else []),
    )


def _allow(sid: str, *actions: str, on: Sequence[Resource], equals: dict[str, str] | None = None) -> Statement:
    return Statement(sid=sid, actions=actions, resources=tuple(on), equals=equals or {})


def _buckets(names: Sequence[str]) -> Iterator[Statement]:
    if names:
        objects = ("s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")
        yield _allow("ListBuckets", "s3:ListBucket", on=[Resource(kind="bucket", name=name) for name in names])
        yield _allow("UseObjects", *objects, on=[Resource(kind="objects", name=name) for name in names])


SESSIONS = _allow(
    "SessionManager",
    "ssm:UpdateInstanceInformation",
    "ssmmessages:CreateControlChannel",
    "ssmmessages:CreateDataChannel",
    "ssmmessages:OpenControlChannel",
    "ssmmessages:OpenDataChannel",
    on=ANYTHING,
)
