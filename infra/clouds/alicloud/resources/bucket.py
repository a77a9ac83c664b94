"""A bucket: versioned, encrypted with the stack's key, closed to the public, spoken to over TLS 1.2 and later only.

Sources: OSS User Guide, "Server-side encryption", "Block public access", "TLS versions" and "Bucket policy"
(acs:SecureTransport); CIS Alibaba Cloud 2.0, section 5. The lifecycle stands in the bucket: it is no resource.
"""

from __future__ import annotations

from dataclasses import dataclass

from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_alicloud import oss

from infra.clouds.tags import REMOVABLE
from infra.plan.cloud_model import Retention

TLS_VERSIONS = ["TLSv1.2", "TLSv1.3"]


@dataclass(frozen=True, kw_only=True)
class BucketArgs:
    """What a bucket needs; everything is decided already."""

    plan: Retention
    key_id: Input[str]


class Bucket(ComponentResource):
    """The bucket and the settings that make it one to trust."""

    bucket: Output[str]

    def __init__(self, name: str, args: BucketArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:alicloud:Bucket", name, {}, opts)
        child = ResourceOptions(parent=self)
        bucket = oss.Bucket(
            f"{name}-bucket",
            storage_class="Standard",
            force_destroy=args.plan.destroyable,
            server_side_encryption_rule={"sse_algorithm": "KMS", "kms_master_key_id": args.key_id},
            lifecycle_rules=[
                {
                    "id": "forget",
                    "prefix": "",
                    "enabled": True,
                    "abort_multipart_uploads": [{"days": args.plan.abandoned_upload_days}],
                    "noncurrent_version_expirations": [{"days": args.plan.old_version_days}],
                }
            ],
            versioning={"status": "Enabled"},
            tags={REMOVABLE: "true"} if args.plan.destroyable else None,
            opts=child,
        )
        self.bucket = bucket.bucket
        oss.BucketAcl(f"{name}-acl", bucket=self.bucket, acl="private", opts=child)
        oss.BucketPublicAccessBlock(f"{name}-private", bucket=self.bucket, block_public_access=True, opts=child)
        oss.BucketHttpsConfig(f"{name}-tls", bucket=self.bucket, enable=True, tls_versions=TLS_VERSIONS, opts=child)
        oss.BucketPolicy(f"{name}-tls-only", bucket=self.bucket, policy=_tls_only(self.bucket), opts=child)
        self.register_outputs({"bucket": self.bucket})


def _tls_only(bucket: Output[str]) -> Output[str]:
    return Output.json_dumps(
        {
            "Version": "1",
            "Statement": [
                {
                    "Effect": "Deny",
                    "Principal": ["*"],
                    "Action": ["oss:*"],
                    "Resource": [Output.concat("acs:oss:*:*:", bucket), Output.concat("acs:oss:*:*:", bucket, "/*")],
                    "Condition": {"Bool": {"acs:SecureTransport": ["false"]}},
                }
            ],
        }
    )
