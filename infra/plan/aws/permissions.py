"""What the nodes may do: each statement one purpose, and no more than it needs.

Sources: Service Authorization Reference (which actions know a resource); mountpoint-s3, "Configuring Mountpoint" (what
it calls); Systems Manager User Guide, "Verify or create an IAM role with Session Manager permissions".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from infra.plan.aws.plan import AwsGroupPlan, LustrePlan
from infra.plan.rented import BucketPlan
from infra.plan.statement import Resource, Statement
from infra.spec.aws import AwsSpec

BUNDLE = ""
ANYTHING = (Resource(kind="anything"),)
USE_OBJECTS = ("s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")


def permissions(
    asked: AwsSpec, groups: Sequence[AwsGroupPlan], storage: Sequence[BucketPlan | LustrePlan]
) -> tuple[Statement, ...]:
    """The statements of the nodes' role."""
    return (
        allow("ReadBundle", "s3:GetObject", on=[Resource(kind="objects", name=BUNDLE)]),
        *use_of_buckets(storage),
        USE_KEY,
        allow("SeeNodes", "ec2:DescribeInstances", "ec2:DescribeTags", on=ANYTHING),
        *_telling_of_load(groups),
        *([SESSIONS] if asked.access.ssm else []),
    )


def _telling_of_load(groups: Sequence[AwsGroupPlan]) -> Iterator[Statement]:
    """Only where nodes come and go by it, and in no namespace but theirs."""
    for namespace in dict.fromkeys(group.load.namespace for group in groups if group.load):
        equals = {"cloudwatch:namespace": namespace}
        yield allow("SendLoad", "cloudwatch:PutMetricData", on=ANYTHING, equals=equals)


def use_of_buckets(storage: Sequence[BucketPlan | LustrePlan]) -> Iterator[Statement]:
    """What mounting the stack file's buckets needs, beside the key."""
    names = [item.name for item in storage if isinstance(item, BucketPlan)]
    if names:
        yield allow("ListBuckets", "s3:ListBucket", on=[Resource(kind="bucket", name=name) for name in names])
        yield allow("UseObjects", *USE_OBJECTS, on=[Resource(kind="objects", name=name) for name in names])


def allow(sid: str, *actions: str, on: Sequence[Resource], equals: dict[str, str] | None = None) -> Statement:
    """A statement in a line."""
    return Statement(sid=sid, actions=actions, resources=tuple(on), equals=equals or {})


USE_KEY = allow("UseKey", "kms:Decrypt", "kms:GenerateDataKey", on=[Resource(kind="key")])
SESSIONS = allow(
    "SessionManager",
    "ssm:UpdateInstanceInformation",
    "ssmmessages:CreateControlChannel",
    "ssmmessages:CreateDataChannel",
    "ssmmessages:OpenControlChannel",
    "ssmmessages:OpenDataChannel",
    on=ANYTHING,
)
