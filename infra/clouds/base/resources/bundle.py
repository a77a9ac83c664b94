"""The playbook bundle as one object of the stack's own bucket, addressed by its content's hash.

Another bundle does not take the place of the first: what was started from it may ask for it at any time. They go with
the bucket.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pulumi import ComponentResource, Input, Output, ResourceOptions

from infra.clouds.bundle import PROJECT, packed, write_archive
from infra.plan.cloud_model import BUNDLES

CONTENT_TYPE = "application/x-tar"


@dataclass(frozen=True, kw_only=True)
class BundleArgs:
    """What the bundle needs. bucket: where it goes. folder: where the archive is kept on this computer."""

    bucket: Input[str]
    folder: Path


class Bundle(ComponentResource):
    """bucket, key: where the object is. sha256: of its content. A cloud's own bundle uploads it."""

    TYPE: str
    bucket: Input[str]
    key: Output[str]
    sha256: str

    def __init__(self, name: str, args: BundleArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__(self.TYPE, name, {}, opts)
        content = packed(PROJECT)
        self.sha256, self.bucket = sha256(content).hexdigest(), args.bucket
        archive = write_archive(content, args.folder / f"{self.sha256}.tar")
        child = ResourceOptions(parent=self, retain_on_delete=True)
        self.key = self.uploaded(f"{name}-object", f"{BUNDLES}{self.sha256}.tar", archive, child)
        self.register_outputs({"key": self.key})

    def uploaded(self, name: str, key: str, archive: Path, opts: ResourceOptions) -> Output[str]:
        """Declares the object `key` of the bucket, with the archive's content, and returns its key."""
        raise NotImplementedError
