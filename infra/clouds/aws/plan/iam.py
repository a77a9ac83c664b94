"""What the nodes may do: each statement one purpose, and no more than it needs.

Jobs and tenants have nothing of it. A node takes on the storage role for them, each time narrowed to what one login may
do: AWS allows what both the role and that session policy allow (IAM User Guide, "Session policies").

What lies in buckets is reached through the VPC's endpoint alone: credentials that are carried out of it open nothing.
The key is used through S3 alone, which calls KMS from outside of the VPC.

Sources: Service Authorization Reference (which actions know a resource); mountpoint-s3, "Configuring Mountpoint" (what
it calls); S3 User Guide, "Controlling access from VPC endpoints with bucket policies"; KMS Developer Guide, "Use VPC
endpoints to control access to AWS KMS resources" and "kms:ViaService"; Systems Manager User Guide, "Verify or create an
IAM role with Session Manager permissions".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from infra.clouds.aws.plan.model import AwsGroupPlan, LustrePlan
from infra.clouds.aws.spec.cluster import AwsSpec
from infra.plan.cloud_model import BUNDLES, BucketPlan
from infra.plan.iam import Resource, Statement

BUNDLE = ""
ANYTHING = (Resource(kind="anything"),)
USE_UPLOADS = ("s3:ListMultipartUploadParts",)  # going on with an upload that was cut off
USE_OBJECTS = ("s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")


def permissions(
    spec: AwsSpec, groups: Sequence[AwsGroupPlan], storage: Sequence[BucketPlan | LustrePlan]
) -> tuple[Statement, ...]:
    """The statements of the nodes' role."""
    return (
        in_buckets("ReadBundle", "s3:GetObject", on=[Resource(kind="objects", name=BUNDLE, prefix=BUNDLES)]),
        *use_of_buckets(storage),
        *([TAKE_ON_STORAGE_ROLE] if storage_role_permissions(spec.region, storage) else []),
        use_key(spec.region, storage),
        allow("SeeNodes", "ec2:DescribeInstances", "ec2:DescribeTags", on=ANYTHING),
        *_telling_of_load(groups),
        *([SESSIONS] if spec.access.ssm else []),
    )


def storage_role_permissions(region: str, storage: Sequence[BucketPlan | LustrePlan]) -> tuple[Statement, ...]:
    """The statements of the role that sessions of jobs and tenants are narrowed from; none without a bucket."""
    names = [item.name for item in storage if isinstance(item, BucketPlan)]
    if not names:
        return ()
    buckets = [Resource(kind="bucket", name=name) for name in names]
    objects = [Resource(kind="objects", name=name) for name in names]
    return (
        in_buckets("ListBuckets", "s3:ListBucket", "s3:ListBucketMultipartUploads", on=buckets),
        in_buckets("UseObjects", *USE_OBJECTS, *USE_UPLOADS, on=objects),
        use_key(region, storage),
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
        yield in_buckets("ListBuckets", "s3:ListBucket", on=[Resource(kind="bucket", name=name) for name in names])
        yield in_buckets("UseObjects", *USE_OBJECTS, on=[Resource(kind="objects", name=name) for name in names])


def use_key(region: str, storage: Sequence[BucketPlan | LustrePlan]) -> Statement:
    """Decrypting what S3 holds, and encrypting where there is something to write to."""
    written = any(isinstance(item, BucketPlan) for item in storage)
    actions = ("kms:Decrypt", "kms:GenerateDataKey") if written else ("kms:Decrypt",)
    return allow("UseKey", *actions, on=[Resource(kind="key")], equals={"kms:ViaService": f"s3.{region}.amazonaws.com"})


def allow(sid: str, *actions: str, on: Sequence[Resource], equals: dict[str, str] | None = None) -> Statement:
    """A statement in a line."""
    return Statement(sid=sid, actions=actions, resources=tuple(on), equals=equals or {})


def in_buckets(sid: str, *actions: str, on: Sequence[Resource]) -> Statement:
    """The same about what lies in buckets, for requests from the stack's own network alone."""
    return Statement(sid=sid, actions=actions, resources=tuple(on), equals={}, within_vpc=True)


TAKE_ON_STORAGE_ROLE = allow("TakeOnStorageRole", "sts:AssumeRole", on=[Resource(kind="storage-role")])
SESSIONS = allow(
    "SessionManager",
    "ssm:UpdateInstanceInformation",
    "ssmmessages:CreateControlChannel",
    "ssmmessages:CreateDataChannel",
    "ssmmessages:OpenControlChannel",
    "ssmmessages:OpenDataChannel",
    on=ANYTHING,
)
