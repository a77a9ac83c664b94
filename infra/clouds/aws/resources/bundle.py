"""The playbook bundle as one object of the stack's own bucket of S3."""

from __future__ import annotations

from pathlib import Path

from pulumi import FileAsset, Output, ResourceOptions
from pulumi_aws import s3

from infra.clouds.base.resources import bundle


class Bundle(bundle.Bundle):
    """In S3."""

    TYPE = "gpufleet:aws:Bundle"

    def uploaded(self, name: str, key: str, archive: Path, opts: ResourceOptions) -> Output[str]:
        return s3.BucketObjectv2(
            name,
            bucket=self.bucket,
            key=key,
            source=FileAsset(str(archive)),
            content_type=bundle.CONTENT_TYPE,
            opts=opts,
        ).key
