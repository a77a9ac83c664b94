"""Policy rules on stored data at Alibaba Cloud: encrypted, private and protected against deletion by default.

Sources: OSS User Guide, "Data security"; CIS Alibaba Cloud 2.0, section 5 (public access, TLS, encryption); KMS User
Guide, "Key rotation" and "Key deletion".
"""

from __future__ import annotations

from collections.abc import Iterator

from infra.clouds.tags import REMOVABLE
from infra.policy.rule import Resource, Stack, Violation, rule, stack_rule
from infra.policy.wire import false, items, mapping, number, true

BUCKET, BLOCK = "alicloud:oss/bucket:Bucket", "alicloud:oss/bucketPublicAccessBlock:BucketPublicAccessBlock"
ACL, HTTPS = "alicloud:oss/bucketAcl:BucketAcl", "alicloud:oss/bucketHttpsConfig:BucketHttpsConfig"
ENCRYPTION = "alicloud:oss/bucketServerSideEncryption:BucketServerSideEncryption"
VERSIONING = "alicloud:oss/bucketVersioning:BucketVersioning"
WEBSITE = "alicloud:oss/bucketWebsite:BucketWebsite"
KEY = "alicloud:kms/key:Key"
LASTING = ("alicloud:ram/accessKey:AccessKey", "alicloud:ram/loginProfile:LoginProfile")
KEY_DAYS = 30  # within the 7 to 366 that KMS allows
OLD_TLS = {"TLSv1.0", "TLSv1.1"}


@stack_rule("alicloud-private-bucket")
def private_bucket(stack: Stack) -> Iterator[tuple[Resource, str, str]]:
    """A bucket has a public-access block that blocks."""
    for bucket in stack.of(BUCKET):
        blocks = list(stack.about(bucket, BLOCK, "bucket"))
        if not blocks or not all(true(each.inputs.get("blockPublicAccess")) for each in blocks):
            yield bucket, "", "needs a public-access block that blocks"


@rule("alicloud-private-acl", ACL, BUCKET)
def private_acl(resource: Resource) -> Iterator[Violation]:
    """No access list is public."""
    if resource.inputs.get("acl", "private") != "private":
        yield "acl", "must be private"


@rule("alicloud-no-website", BUCKET, WEBSITE)
def no_website(resource: Resource) -> Iterator[Violation]:
    """A bucket is no web site."""
    if resource.type == WEBSITE or resource.inputs.get("website"):
        yield "website", "makes a web site of the bucket, for everybody"


@stack_rule("alicloud-encrypted-bucket")
def encrypted_bucket(stack: Stack) -> Iterator[tuple[Resource, str, str]]:
    """A bucket encrypts what it holds; without a word it does not."""
    for bucket in stack.of(BUCKET):
        own = mapping(bucket.inputs.get("serverSideEncryptionRule")).get("sseAlgorithm")
        if not own and not list(stack.about(bucket, ENCRYPTION, "bucket")):
            yield bucket, "serverSideEncryptionRule", "must be set: OSS keeps objects in clear without it"


@stack_rule("alicloud-bucket-over-tls")
def bucket_over_tls(stack: Stack) -> Iterator[tuple[Resource, str, str]]:
    """A bucket is spoken to over TLS 1.2 and later."""
    for bucket in stack.of(BUCKET):
        configs = list(stack.about(bucket, HTTPS, "bucket"))
        versions = {version for each in configs for version in items(each.inputs.get("tlsVersions"))}
        if not configs or not all(true(each.inputs.get("enable")) for each in configs):
            yield bucket, "", "needs an HTTPS configuration that is enabled"
        elif not versions or versions & OLD_TLS:
            yield bucket, "", "speaks TLS older than 1.2; name TLSv1.2 and TLSv1.3"


@stack_rule("alicloud-bucket-keeps-versions")
def bucket_keeps_versions(stack: Stack) -> Iterator[tuple[Resource, str, str]]:
    """A bucket remembers what was overwritten or deleted."""
    for bucket in stack.of(BUCKET):
        states = [each.inputs.get("status") for each in stack.about(bucket, VERSIONING, "bucket")]
        states.append(mapping(bucket.inputs.get("versioning")).get("status"))
        if "Enabled" not in states:
            yield bucket, "versioning", "must be Enabled: one wrong `rm` would be for ever"


@rule("alicloud-bucket-keeps-its-objects", BUCKET)
def bucket_keeps_its_objects(resource: Resource) -> Iterator[Violation]:
    """A bucket goes with its objects only where the stack says so twice: `forceDestroy`, and the tag."""
    removable = mapping(resource.inputs.get("tags")).get(REMOVABLE)
    if not (false(resource.inputs.get("forceDestroy")) or resource.protect or true(removable)):
        yield "forceDestroy", f"deletes all that the bucket holds; leave it out, or tag the bucket {REMOVABLE}"


@rule("alicloud-key-rotates", KEY)
def key_rotates(resource: Resource) -> Iterator[Violation]:
    """A symmetric key rotates, and dies slowly."""
    spec = str(resource.inputs.get("keySpec", "Aliyun_AES_256"))
    if spec.startswith("Aliyun") and resource.inputs.get("automaticRotation") != "Enabled":
        yield "automaticRotation", "must be Enabled: a key that leaks once would open everything for ever"
    if (number(resource.inputs.get("pendingWindowInDays", KEY_DAYS)) or 0) < KEY_DAYS and not resource.protect:
        yield "pendingWindowInDays", f"must be {KEY_DAYS}: whatever is encrypted with it is lost after that"


@rule("alicloud-no-lasting-credentials", *LASTING)
def no_lasting_credentials(_: Resource) -> Iterator[Violation]:
    """A stack makes no access key and no password: what runs has a role."""
    yield "", "is valid until somebody remembers it, and stands in the stack's state; use a role"
