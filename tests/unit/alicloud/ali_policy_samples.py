"""Sound resources of Alibaba Cloud, each with changes, for the cases of the policy."""

from __future__ import annotations

import json
from typing import Any

from infra.clouds.alicloud.policy import keeping, network, nodes, rights
from infra.policy import Resource

TAGS = {"gpufleet:stack": "x", "gpufleet:name": "y"}
URN = "urn:pulumi:x::gpufleet::pulumi:providers:alicloud::alicloud"


def made(kind: str, name: str = "it", *, provider: str = URN, protect: bool = False, **inputs: Any) -> Resource:
    return Resource(type=kind, name=name, urn=f"urn:{kind}::{name}", inputs=inputs, provider=provider, protect=protect)


def opened(**inputs: Any) -> Resource:
    """An ingress rule for SSH from a named network, with these inputs instead."""
    sound = {"type": "ingress", "ipProtocol": "tcp", "portRange": "22/22", "cidrIp": "203.0.113.0/24"}
    return made(network.RULE, **{**sound, **inputs})


def machine(**inputs: Any) -> Resource:
    sound = {"systemDiskEncrypted": True, "httpTokens": "required", "tags": TAGS}
    return made(nodes.INSTANCE, **{**sound, **inputs})


def template(**inputs: Any) -> Resource:
    return made(nodes.TEMPLATE, **{"systemDisk": {"encrypted": True}, "httpTokens": "required", "tags": TAGS, **inputs})


def pool(**inputs: Any) -> Resource:
    tokens = {"instanceMetadataOptions": {"httpTokens": "required"}}
    return made(nodes.POOL, **{"systemDiskEncrypted": True, **tokens, "tags": TAGS, **inputs})


def configuration(**inputs: Any) -> Resource:
    return made(nodes.CONFIGURATION, **{"systemDiskEncrypted": True, "tags": TAGS, **inputs})


def mix(**inputs: Any) -> Resource:
    sound = {
        "spotInstanceInterruptionBehavior": "terminate",
        "terminateInstances": True,
        "excessCapacityTerminationPolicy": "termination",
        "launchTemplateConfigs": [{"maxPrice": "9"}],
    }
    return made(nodes.MIX, **{**sound, **inputs})


def bucket(*others: Resource, **inputs: Any) -> list[Resource]:
    """A sound bucket, with these inputs instead; `others` in place of its own settings of the same type."""
    sound = {"serverSideEncryptionRule": {"sseAlgorithm": "KMS"}, "versioning": {"status": "Enabled"}, "tags": TAGS}
    settings = {
        keeping.BLOCK: made(keeping.BLOCK, bucket="b", blockPublicAccess=True),
        keeping.HTTPS: made(keeping.HTTPS, bucket="b", enable=True, tlsVersions=["TLSv1.2", "TLSv1.3"]),
        **{each.type: each for each in others},
    }
    return [made(keeping.BUCKET, **{**sound, "bucket": "b", **inputs}), *settings.values()]


def plugin(settings: Any, name: str = "terway-eniip") -> dict[str, Any]:
    return {"name": name, "config": settings if isinstance(settings, str | None) else json.dumps(settings)}


def cluster(**inputs: Any) -> Resource:
    sound = {
        "slbInternetEnabled": False,
        "encryptionProviderKey": "k",
        "auditLogConfig": {"enabled": True},
        "addons": [{"name": "csi-plugin"}, plugin({"NetworkPolicy": "true"})],
    }
    return made(network.CLUSTER, **{**sound, "tags": TAGS, **inputs})


def policy(action: str | list[str], resource: str = "acs:oss:*:*:b/*", *, name: str = "it", **more: Any) -> Resource:
    statement = {"Effect": "Allow", "Action": action, "Resource": resource, **more}
    return made(rights.POLICY, policyName=name, policyDocument=json.dumps({"Version": "1", "Statement": [statement]}))


def role(principal: Any, *, name: str = "it", **more: Any) -> Resource:
    statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": principal, **more}
    trust = json.dumps({"Version": "1", "Statement": [statement]})
    return made(rights.ROLE, roleName=name, assumeRolePolicyDocument=trust, tags=TAGS)


def for_pods(**tests: str | list[str] | None) -> Resource:
    """A role for pods of ACK (RRSA), by what they say of themselves."""
    provider = {"Federated": ["acs:ram::1234567890123456:oidc-provider/ack-rrsa-c1"]}
    sound = {"iss": "https://oidc-ack-cn-beijing.aliyuncs.com/c1", **tests}
    said = {f"oidc:{key}": value for key, value in sound.items() if value is not None}
    return role(provider, name="pods", Condition={"StringLike": said})


ONE = {"sub": "system:serviceaccount:research:loader", "aud": "sts.aliyuncs.com"}


def pods_with(action: str, resource: str, **more: Any) -> list[Resource]:
    """A sound role for pods, with a policy of its own."""
    given = policy(action, resource, name="pods", **more)
    return [
        for_pods(**ONE),
        given,
        made(rights.ATTACHMENTS[0], roleName="pods", policyName="pods", policyType="Custom"),
    ]


def bucket_policy(**statement: Any) -> Resource:
    sound = {"Effect": "Allow", "Action": ["oss:GetObject"], "Resource": ["acs:oss:*:*:b/*"]}
    return made(rights.BUCKET_POLICY, bucket="b", policy=json.dumps({"Statement": [{**sound, **statement}]}))
