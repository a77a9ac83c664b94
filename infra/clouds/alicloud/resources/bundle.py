"""The playbook bundle as one object of the stack's own bucket of OSS."""

from __future__ import annotations

from pathlib import Path

from pulumi import Output, ResourceOptions
from pulumi_alicloud import oss

from infra.clouds.base.resources import bundle


class Bundle(bundle.Bundle):
    """In OSS."""

    TYPE = "gpufleet:alicloud:Bundle"

    def uploaded(self, name: str, key: str, archive: Path, opts: ResourceOptions) -> Output[str]:
        return oss.BucketObject(
            name, bucket=self.bucket, key=key, source=str(archive), content_type=bundle.CONTENT_TYPE, opts=opts
        ).key
