"""A bucket: versioned, encrypted with the stack's key, closed to the public, spoken to over TLS only.

Source: S3 User Guide, "Security best practices for Amazon S3" and "Reducing the cost of SSE-KMS with bucket keys".
"""

from __future__ import annotations

from dataclasses import dataclass

from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_aws import s3

from infra.clouds.aws.resources.iam.documents import policy
from infra.clouds.tags import REMOVABLE
from infra.plan.cloud_model import Retention


@dataclass(frozen=True, kw_only=True)
class BucketArgs:
    """What a bucket needs; everything is decided already."""

    plan: Retention
    key_arn: Input[str]


class Bucket(ComponentResource):
    """The bucket and the five settings that make it one to trust."""

    bucket: Output[str]
    arn: Output[str]

    def __init__(self, name: str, args: BucketArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:aws:Bucket", name, {}, opts)
        child = ResourceOptions(parent=self)
        removable = {REMOVABLE: "true"} if args.plan.destroyable else None
        bucket = s3.Bucket(f"{name}-bucket", force_destroy=args.plan.destroyable, tags=removable, opts=child)
        self.bucket, self.arn = bucket.bucket, bucket.arn
        s3.BucketPublicAccessBlock(
            f"{name}-private",
            bucket=bucket.id,
            block_public_acls=True,
            block_public_policy=True,
            ignore_public_acls=True,
            restrict_public_buckets=True,
            opts=child,
        )
        s3.BucketVersioning(
            f"{name}-versions", bucket=bucket.id, versioning_configuration={"status": "Enabled"}, opts=child
        )
        s3.BucketServerSideEncryptionConfiguration(
            f"{name}-encryption",
            bucket=bucket.id,
            rules=[
                {
                    "apply_server_side_encryption_by_default": {
                        "sse_algorithm": "aws:kms",
                        "kms_master_key_id": args.key_arn,
                    },
                    "bucket_key_enabled": True,
                }
            ],
            opts=child,
        )
        s3.BucketLifecycleConfiguration(
            f"{name}-lifecycle",
            bucket=bucket.id,
            rules=[
                {
                    "id": "forget",
                    "status": "Enabled",
                    "filter": {"prefix": ""},
                    "abort_incomplete_multipart_upload": {"days_after_initiation": args.plan.abandoned_upload_days},
                    "noncurrent_version_expiration": {"noncurrent_days": args.plan.old_version_days},
                }
            ],
            opts=child,
        )
        s3.BucketPolicy(f"{name}-tls-only", bucket=bucket.id, policy=_tls_only(bucket.arn), opts=child)
        self.register_outputs({"bucket": self.bucket})


def _tls_only(arn: Output[str]) -> Output[str]:
    return policy(
        {
            "Sid": "TlsOnly",
            "Effect": "Deny",
            "Principal": "*",
            "Action": "s3:*",
            "Resource": [arn, Output.concat(arn, "/*")],
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        }
    )
