"""The playbook bundle as one object of the stack's own bucket of S3, addressed by its content's hash.

Another bundle does not take the place of the first: what was started from it may ask for it at any time. They go with
the bucket.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pulumi import ComponentResource, FileAsset, Input, Output, ResourceOptions
from pulumi_aws import s3

from infra.clouds.bundle import PROJECT, kept, packed
from infra.plan.cloud_model import BUNDLES


@dataclass(frozen=True, kw_only=True)
class BundleArgs:
    """What the bundle needs. bucket: where it goes. folder: where the archive is kept on this computer."""

    bucket: Input[str]
    folder: Path


class Bundle(ComponentResource):
    """bucket, key: where the object is. sha256: of its content."""

    bucket: Input[str]
    key: Output[str]
    sha256: str

    def __init__(self, name: str, args: BundleArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:aws:Bundle", name, {}, opts)
        content = packed(PROJECT)
        self.sha256, self.bucket = sha256(content).hexdigest(), args.bucket
        uploaded = s3.BucketObjectv2(
            f"{name}-object",
            bucket=args.bucket,
            key=f"{BUNDLES}{self.sha256}.tar",
            source=FileAsset(str(kept(content, args.folder / f"{self.sha256}.tar"))),
            content_type="application/x-tar",
            opts=ResourceOptions(parent=self, retain_on_delete=True),
        )
        self.key = uploaded.key
        self.register_outputs({"key": self.key})
