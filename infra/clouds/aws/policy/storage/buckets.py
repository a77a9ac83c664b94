"""A bucket is private and spoken to over TLS only (S3 User Guide, "Security best practices for Amazon S3")."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from infra.clouds.aws.policy.types import BUCKET
from infra.policy.rule import Resource, Stack, Violation, rule, stack_rule
from infra.policy.wire import items, mapping, true

BLOCK = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"
POLICY = "aws:s3/bucketPolicy:BucketPolicy"
ACL = "aws:s3/bucketAcl:BucketAcl"
BUCKETS = (BUCKET, "aws:s3/bucketV2:BucketV2")  # the second is the old name of the first
ACCOUNT_BLOCK = "aws:s3/accountPublicAccessBlock:AccountPublicAccessBlock"
SWITCHES = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
PUBLIC_ACLS = ("public-read", "public-read-write", "authenticated-read")
WEBSITE = "aws:s3/bucketWebsiteConfiguration:BucketWebsiteConfiguration"


@stack_rule("private-bucket")
def private_bucket(stack: Stack) -> Iterator[tuple[Resource, str, str]]:
    """A bucket has a public-access block."""
    for bucket in stack.of(*BUCKETS):
        if not list(stack.about(bucket, BLOCK, "bucket")):
            yield bucket, "", "needs a public-access block with all four switches on"


@rule("public-access-block", BLOCK, ACCOUNT_BLOCK)
def public_access_block(resource: Resource) -> Iterator[Violation]:
    """A public-access block has all four switches on."""
    for switch in SWITCHES:
        if not true(resource.inputs.get(switch)):
            yield switch, "must be true"


@rule("private-acl", ACL, *BUCKETS)
def private_acl(resource: Resource) -> Iterator[Violation]:
    """No access list is public."""
    if resource.inputs.get("acl") in PUBLIC_ACLS:
        yield "acl", "must be private"


@rule("no-website", WEBSITE, *BUCKETS)
def no_website(resource: Resource) -> Iterator[Violation]:
    """A bucket is no web site: those are spoken to over plain HTTP, by everybody."""
    if resource.type == WEBSITE or resource.inputs.get("website"):
        yield "", "makes a web site of the bucket, which is plain HTTP for everybody; put a distribution before it"


@stack_rule("tls-only-bucket")
def tls_only_bucket(stack: Stack) -> Iterator[tuple[Resource, str, str]]:
    """A bucket's policy denies everybody every action, on the bucket and its objects, over plain HTTP."""
    for bucket in stack.of(*BUCKETS):
        policies = [policy.inputs.get("policy") for policy in stack.about(bucket, POLICY, "bucket")]
        if not any(_denies_plain_http(policy) for policy in (*policies, bucket.inputs.get("policy"))):
            yield bucket, "", "needs a bucket policy that denies every request without TLS (aws:SecureTransport false)"


def _denies_plain_http(policy: Any) -> bool:
    try:
        document = json.loads(policy) if isinstance(policy, str) else policy
    except ValueError:
        return False
    statements = items(mapping(document).get("Statement"))
    return any(_is_tls_guard(mapping(statement)) for statement in statements)


def _is_tls_guard(statement: Mapping[str, Any]) -> bool:
    everybody = statement.get("Principal") in ("*", {"AWS": "*"}, {"AWS": ["*"]})
    whole = any(str(resource).endswith("/*") or resource == "*" for resource in items(statement.get("Resource")))
    everything = {"*", "s3:*"} & set(items(statement.get("Action")))
    condition = mapping(statement.get("Condition"))
    plain = mapping(condition.get("Bool")).get("aws:SecureTransport")
    return bool(
        statement.get("Effect") == "Deny"
        and everybody
        and whole
        and everything
        and list(condition) == ["Bool"]
        and len(mapping(condition["Bool"])) == 1
        and all(str(value).lower() == "false" for value in items(plain))
        and plain is not None
    )
