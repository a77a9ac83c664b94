"""What cannot be recreated is protected against deletion: by Pulumi's `protect`, or by a guard of its own.

Sources: S3 API, DeleteBucket (refuses a bucket that is not empty) and "Using versioning in S3 buckets"; FSx API,
DeleteFileSystemLustreConfiguration (SkipFinalBackup); KMS API, ScheduleKeyDeletion (30 days by default); EBS, EFS and
EC2 User Guides (a volume and an EFS file system have no such guard; a Capacity Block cannot be cancelled or bought
again at its price).
"""

from __future__ import annotations

from collections.abc import Iterator

from infra.clouds.aws.policy.storage.buckets import BUCKETS
from infra.clouds.aws.policy.types import BLOCK_PURCHASE, KEY, LUSTRE
from infra.clouds.tags import REMOVABLE
from infra.policy.rule import Resource, Stack, Violation, rule, stack_rule
from infra.policy.wire import false, mapping, number, true

VERSIONING = "aws:s3/bucketVersioning:BucketVersioning"
SHOWN_BUCKET = "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation"
VOLUME, FILE_SYSTEM = "aws:ebs/volume:Volume", "aws:efs/fileSystem:FileSystem"
KEY_DAYS = 30  # KMS's own default, and the most it allows


@rule("bucket-keeps-its-objects", *BUCKETS)
def bucket_keeps_its_objects(resource: Resource) -> Iterator[Violation]:
    """A bucket goes with its objects only where the stack says so twice: `forceDestroy`, and the tag."""
    removable = mapping(resource.inputs.get("tags")).get(REMOVABLE)
    if not (false(resource.inputs.get("forceDestroy")) or resource.protect or true(removable)):
        yield "forceDestroy", f"deletes all that the bucket holds; leave it out, or tag the bucket {REMOVABLE}"


@stack_rule("bucket-keeps-versions")
def bucket_keeps_versions(stack: Stack) -> Iterator[tuple[Resource, str, str]]:
    """A bucket remembers what was overwritten or deleted."""
    for bucket in stack.of(*BUCKETS):
        states = [
            mapping(each.inputs.get("versioningConfiguration")) for each in stack.about(bucket, VERSIONING, "bucket")
        ]
        inline = mapping(bucket.inputs.get("versioning")).get("enabled")
        if not (true(inline) or any(state.get("status") == "Enabled" for state in states)):
            yield bucket, "", "needs versioning: one wrong `rm` would be for ever"


@stack_rule("file-system-leaves-a-copy")
def file_system_leaves_a_copy(stack: Stack) -> Iterator[tuple[Resource, str, str]]:
    """A file system of FSx leaves a backup, or its files are a bucket's. Without a word, there is no backup."""
    for files in stack.of(LUSTRE):
        backup = "skipFinalBackup" in files.inputs and false(files.inputs["skipFinalBackup"])
        if not (backup or files.protect or list(stack.about(files, SHOWN_BUCKET, "fileSystemId"))):
            yield files, "skipFinalBackup", "must be false, or the file system show a bucket"


@rule("guarded-storage", VOLUME, FILE_SYSTEM)
def guarded_storage(resource: Resource) -> Iterator[Violation]:
    """Volumes of their own, and EFS, are gone at once: Pulumi protects them, or a last snapshot is taken."""
    if not (resource.protect or true(resource.inputs.get("finalSnapshot"))):
        yield "", "would be deleted with its data; protect it" + ", or set finalSnapshot" * (resource.type == VOLUME)


@rule("key-dies-slowly", KEY)
def key_dies_slowly(resource: Resource) -> Iterator[Violation]:
    """With its key all data is lost: there is a month to notice."""
    days = number(resource.inputs.get("deletionWindowInDays", KEY_DAYS))
    if not (resource.protect or (days or 0) >= KEY_DAYS):
        yield "deletionWindowInDays", f"must be {KEY_DAYS}: whatever is encrypted with it is lost after that"


@rule("bought-capacity-is-protected", BLOCK_PURCHASE)
def bought_capacity_is_protected(resource: Resource) -> Iterator[Violation]:
    """A Capacity Block was paid up front: deleting it only forgets that, and the next deployment buys another."""
    if not resource.protect:
        yield "", "must be protected: forgotten by the state, it would be bought a second time"
