"""The same with Pulumi's own mocks: one component, without a stack file. For what the renderer cannot see: outputs.

Two traps. Mocks see wire names (`forceDestroy`), programs see Python's (`force_destroy`). And a check inside `apply`
counts only under `@pulumi.runtime.test`: without it, or in a preview, it never runs and the test passes.
"""

from __future__ import annotations

from typing import Any

import pulumi
from pulumi.runtime import mocks

from infra.clouds.aws.resources.storage.bucket import Bucket, BucketArgs
from infra.plan.cloud_model import Retention

SEEN: dict[str, dict[str, Any]] = {}


class Cloud(mocks.Mocks):
    """Answers every resource with its inputs and an id, and keeps what was asked for."""

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        SEEN[args.name] = args.inputs
        return f"{args.name}-id", {"arn": f"arn:aws:s3:::{args.name}", "bucket": f"{args.name}-name", **args.inputs}

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, Any], None]:
        return {}, None


mocks.set_mocks(Cloud(), project="gpufleet", stack="test")  # before anything is declared

KEEP = Retention(old_version_days=30, abandoned_upload_days=7, destroyable=False)


@pulumi.runtime.test
def test_a_bucket_keeps_what_it_holds() -> pulumi.Output[None]:
    bucket = Bucket("data", BucketArgs(plan=KEEP, key_arn="arn:aws:kms:us-east-1:123456789012:key/k"))

    def check(_: str) -> None:  # runs once the bucket is there, which what is made of it may not be yet
        assert not SEEN["data-bucket"].get("forceDestroy")

    return bucket.bucket.apply(check)


@pulumi.runtime.test
def test_a_bucket_tells_the_name_that_the_cloud_gave_it() -> pulumi.Output[None]:
    bucket = Bucket("logs", BucketArgs(plan=KEEP, key_arn="arn:aws:kms:us-east-1:123456789012:key/k"))

    def check(name: str) -> None:
        assert name == "logs-bucket-name"

    return bucket.bucket.apply(check)
