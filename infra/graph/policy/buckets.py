"""A bucket is private and spoken to over TLS only (S3 User Guide, "Security best practices for Amazon S3")."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from infra.graph.policy.rule import Resource, Stack, Violation, rule
from infra.graph.policy.wire import BUCKET, items, mapping, true

BLOCK = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"
POLICY = "aws:s3/bucketPolicy:BucketPolicy"
ACL = "aws:s3/bucketAcl:BucketAcl"
OLD_BUCKET = "aws:s3/bucketV2:BucketV2"
SWITCHES = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
PUBLIC_ACLS = ("public-read", "public-read-write", "authenticated-read")


@rule("private-bucket", BUCKET, OLD_BUCKET)
def private_bucket(resource: Resource, stack: Stack) -> Iterator[Violation]:
    blocks = list(stack.about(resource, BLOCK, "bucket"))
    if not blocks:
        yield "", "needs a public-access block with all four switches on"
    if resource.inputs.get("acl") in PUBLIC_ACLS:
        yield "acl", "must be private"


@rule("public-access-block", BLOCK)
def public_access_block(resource: Resource, stack: Stack) -> Iterator[Violation]:
    for switch in SWITCHES:
        if not true(resource.inputs.get(switch)):
            yield switch, "must be true"


@rule("private-acl", ACL)
def private_acl(resource: Resource, stack: Stack) -> Iterator[Violation]:
    if resource.inputs.get("acl") in PUBLIC_ACLS:
        yield "acl", "must be private"


@rule("tls-only-bucket", BUCKET, OLD_BUCKET)
def tls_only_bucket(resource: Resource, stack: Stack) -> Iterator[Violation]:
    """The policy denies everybody every action, on the bucket and its objects, over plain HTTP."""
    policies = [policy.inputs.get("policy") for policy in stack.about(resource, POLICY, "bucket")]
    if not any(_denies_plain_http(policy) for policy in (*policies, resource.inputs.get("policy"))):
        yield "", "needs a bucket policy that denies every request without TLS (aws:SecureTransport false)"


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
