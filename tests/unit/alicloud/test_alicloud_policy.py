"""What no stack on Alibaba Cloud may declare is refused in every form that it may have, and nothing sound is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from infra.clouds.alicloud.policy import keeping, network, nodes, rights
from infra.policy import Resource, check, rules

PROVIDER = "pulumi:providers:alicloud"
TAGS = {"gpufleet:stack": "x", "gpufleet:name": "y"}
URN = "urn:pulumi:x::gpufleet::pulumi:providers:alicloud::alicloud"
ENFORCED, BELOW = "alicloud-enforces-network-policies", "alicloud-pods-below-their-prefix"
LEAK = "LTAI5tKmXxQwErTyUiOpAsDf"


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
DATA = "acs:oss:*:*:data"


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


INSECURE: dict[str, tuple[str, list[Resource]]] = {
    "SSH from everywhere": ("alicloud-ssh-from-the-world", [opened(cidrIp="0.0.0.0/0")]),
    "SSH from everywhere by IPv6": ("alicloud-ssh-from-the-world", [opened(cidrIp=None, ipv6CidrIp="::/0")]),
    "SSH from half of the world": ("alicloud-ssh-from-the-world", [opened(cidrIp="128.0.0.0/1")]),
    "every port from everywhere": (
        "alicloud-ssh-from-the-world",
        [opened(ipProtocol="all", portRange="-1/-1", cidrIp="0.0.0.0/0")],
    ),
    "a range of ports with 22 in it": ("alicloud-ssh-from-the-world", [opened(portRange="1/1024", cidrIp="0.0.0.0/0")]),
    "SSH from a prefix list": ("alicloud-ssh-from-the-world", [opened(cidrIp=None, prefixListId="pl-1")]),
    "SSH from nobody knows whom": ("alicloud-ssh-from-the-world", [opened(cidrIp="[unknown]")]),
    "a notebook for everybody": (
        "alicloud-only-web-from-the-world",
        [opened(portRange="8888/8888", cidrIp="0.0.0.0/0")],
    ),
    "a dashboard for a prefix list": (
        "alicloud-only-web-from-the-world",
        [opened(portRange="8265/8265", cidrIp=None, prefixListId="pl-bp1")],
    ),
    "everything over UDP": (
        "alicloud-only-web-from-the-world",
        [opened(ipProtocol="udp", portRange="1/65535", cidrIp="0.0.0.0/0")],
    ),
    "no flow log": ("alicloud-flow-log", [made(network.VPC, tags=TAGS)]),
    "a machine with public bandwidth": ("alicloud-no-public-address", [machine(internetMaxBandwidthOut=10)]),
    "a template with public bandwidth": ("alicloud-no-public-address", [template(internetMaxBandwidthOut=1)]),
    "a fleet with public bandwidth": ("alicloud-no-public-address", [configuration(internetMaxBandwidthOut=5)]),
    "a pool with public bandwidth": ("alicloud-no-public-address", [pool(internetMaxBandwidthOut=5)]),
    "an address at birth": ("alicloud-no-public-address", [machine(allocatePublicIp=True)]),
    "IPv6 beside an ERI": ("alicloud-no-public-address", [machine(ipv6AddressCount=1)]),
    "IPv6 on an ERI of a fleet": (
        "alicloud-no-public-address",
        [configuration(networkInterfaces=[{"ipv6AddressCount": 1}])],
    ),
    "an address of a node": ("alicloud-entrance", [made(nodes.ADDRESS, instanceType="EcsInstance", instanceId="i-1")]),
    "a disk in clear": ("alicloud-encrypted-disks", [machine(systemDiskEncrypted=False)]),
    "a fleet's disk in clear": ("alicloud-encrypted-disks", [configuration(systemDiskEncrypted=None)]),
    "a pool's disk in clear": ("alicloud-encrypted-disks", [pool(systemDiskEncrypted=None)]),
    "a data disk in clear": ("alicloud-encrypted-disks", [machine(dataDisks=[{"size": 100}])]),
    "a template's disk in clear": ("alicloud-encrypted-template-disks", [template(systemDisk={"size": 40})]),
    "a loose disk in clear": ("alicloud-encrypted-disk", [made(nodes.DISK, tags=TAGS)]),
    "metadata without a token": ("alicloud-metadata-tokens", [machine(httpTokens="optional")]),
    "a template without a word on tokens": ("alicloud-metadata-tokens", [template(httpTokens=None)]),
    "a pool without a word on tokens": ("alicloud-pool-metadata-tokens", [pool(instanceMetadataOptions=None)]),
    "a password": ("alicloud-no-password", [machine(password="Abc12345!")]),
    "an encrypted password": ("alicloud-no-password", [configuration(kmsEncryptedPassword="x")]),
    "the image's password": ("alicloud-no-password", [template(passwordInherit=True)]),
    "interrupted nodes that stop": ("alicloud-mix-ends", [mix(spotInstanceInterruptionBehavior="stop")]),
    "nodes that outlive their group": ("alicloud-mix-ends", [mix(terminateInstances=False)]),
    "a mix without a limit": ("alicloud-mix-ends", [mix(launchTemplateConfigs=[{"instanceType": "a"}])]),
    "a limit without a figure": ("alicloud-spot-names-its-limit", [machine(spotStrategy="SpotWithPriceLimit")]),
    "an assurance that may be forgotten": ("alicloud-assurance-is-protected", [made(nodes.ASSURANCE, tags=TAGS)]),
    "a public API": ("alicloud-api-in-the-network", [cluster(slbInternetEnabled=True)]),
    "secrets in clear": ("alicloud-kubernetes-secrets", [cluster(encryptionProviderKey=None)]),
    "a network without policies": (ENFORCED, [cluster(addons=[plugin({"NetworkPolicy": "false"})])]),
    "a network without a word on policies": (ENFORCED, [cluster(addons=[plugin(None)])]),
    "a network with unknown settings": (ENFORCED, [cluster(addons=[plugin("[unknown]")])]),
    "a network that knows no policies": (
        ENFORCED,
        [cluster(addons=[plugin({"NetworkPolicy": "true"}, name="flannel")])],
    ),
    "a cluster without a network plug-in": (ENFORCED, [cluster(addons=None)]),
    "no audit log": ("alicloud-audit-log", [cluster(auditLogConfig=None)]),
    "messages in clear": ("alicloud-encrypted-messages", [made(network.QUEUE)]),
    "logs in clear": ("alicloud-encrypted-logs", [made(network.LOG_STORE)]),
    "a bucket without a block": ("alicloud-private-bucket", bucket()[:1]),
    "a block that does not block": (
        "alicloud-private-bucket",
        bucket(made(keeping.BLOCK, bucket="b", blockPublicAccess=False)),
    ),
    "a public list": ("alicloud-private-acl", [made(keeping.ACL, bucket="b", acl="public-read")]),
    "a web site": ("alicloud-no-website", bucket(website={"indexDocument": "index.html"})),
    "objects in clear": ("alicloud-encrypted-bucket", bucket(serverSideEncryptionRule=None)),
    "old TLS": (
        "alicloud-bucket-over-tls",
        bucket(made(keeping.HTTPS, bucket="b", enable=True, tlsVersions=["TLSv1.1", "TLSv1.2"])),
    ),
    "no word on TLS": ("alicloud-bucket-over-tls", bucket()[:2]),
    "no versions": ("alicloud-bucket-keeps-versions", bucket(versioning=None)),
    "a bucket that goes with all": ("alicloud-bucket-keeps-its-objects", bucket(forceDestroy=True)),
    "a key for ever": ("alicloud-key-rotates", [made(keeping.KEY, tags=TAGS)]),
    "a key that dies at once": (
        "alicloud-key-rotates",
        [made(keeping.KEY, automaticRotation="Enabled", pendingWindowInDays=7, tags=TAGS)],
    ),
    "everything": ("alicloud-named-actions", [policy("*", "*")]),
    "everything of OSS": ("alicloud-named-actions", [policy("oss:*")]),
    "every bucket": ("alicloud-named-actions", [policy("oss:GetObject", "*")]),
    "all but one": ("alicloud-named-actions", [policy([], NotAction="oss:DeleteObject")]),
    "every bucket by another word": ("alicloud-named-actions", [policy("oss:GetObject", "acs:oss:*:*:*")]),
    "every bucket with a hyphen": ("alicloud-named-actions", [policy("oss:PutObject", "acs:oss:*:*:*-*/?*")]),
    "every action by a letter": ("alicloud-named-actions", [policy("oss:?etObject")]),
    "commands on every machine": ("alicloud-named-actions", [policy("ecs:RunCommand", "acs:ecs:*:*:instance/*")]),
    "files onto every machine": ("alicloud-named-actions", [policy("ecs:SendFile", "*")]),
    "every role": ("alicloud-named-actions", [policy("sts:AssumeRole", "acs:ram:*:*:role/?*")]),
    "a policy for any role": (
        "alicloud-privilege-escalation",
        [policy("ram:AttachPolicyToRole", "acs:ram:*:1234567890123456:role/node")],
    ),
    "a new version of a policy": (
        "alicloud-privilege-escalation",
        [policy("ram:CreatePolicyVersion", "acs:ram:*:1234567890123456:policy/nodes")],
    ),
    "an access key of somebody's": (
        "alicloud-privilege-escalation",
        [policy("ram:CreateAccessKey", "acs:ram:*:1234567890123456:user/ops")],
    ),
    "passing any role": ("alicloud-privilege-escalation", [policy("ram:PassRole", "acs:ram:*:*:role/*-*")]),
    "a role for everybody": ("alicloud-named-principals", [role({"RAM": ["*"]})]),
    "a role for everybody by a pattern": ("alicloud-named-principals", [role({"RAM": ["acs:ram::*:root"]})]),
    "another account": ("alicloud-foreign-account", [role({"RAM": ["acs:ram::9999888877776666:root"]})]),
    "another account's service": (
        "alicloud-foreign-account",
        [role({"Service": ["9999888877776666@actiontrail.aliyuncs.com"]})],
    ),
    "pods of every namespace": (
        "alicloud-federated-subjects",
        [for_pods(sub="system:serviceaccount:*:loader", aud="sts.aliyuncs.com")],
    ),
    "service accounts whose names begin so": (
        "alicloud-pod-roles",
        [for_pods(sub="system:serviceaccount:research:*", aud="sts.aliyuncs.com")],
    ),
    "one service account of namespaces that begin so": (
        "alicloud-pod-roles",
        [for_pods(sub="system:serviceaccount:research?:loader", aud="sts.aliyuncs.com")],
    ),
    "one service account or all": (
        "alicloud-pod-roles",
        [for_pods(sub=[ONE["sub"], "system:serviceaccount:research:*"], aud="sts.aliyuncs.com")],
    ),
    "tokens for the cluster's API": (
        "alicloud-pod-roles",
        [for_pods(**{**ONE, "aud": "https://kubernetes.default.svc"})],
    ),
    "tokens of any cluster": ("alicloud-pod-roles", [for_pods(**ONE, iss=None)]),
    "tokens of clusters by a pattern": ("alicloud-pod-roles", [for_pods(**ONE, iss="https://oidc-ack-*")]),
    "pods that use a whole bucket": (BELOW, pods_with("oss:GetObject", f"{DATA}/*")),
    "pods that use folders by a pattern": (BELOW, pods_with("oss:PutObject", f"{DATA}/res*/x")),
    "pods that list a whole bucket": (BELOW, pods_with("oss:ListObjects", DATA)),
    "pods that list what begins so": (
        BELOW,
        pods_with("oss:ListObjects", DATA, Condition={"StringLike": {"oss:Prefix": "research*"}}),
    ),
    "pods that list their prefix, if one is named": (
        BELOW,
        pods_with("oss:ListObjects", DATA, Condition={"StringLikeIfExists": {"oss:Prefix": "research/*"}}),
    ),
    "taking on every role": ("alicloud-privilege-escalation", [policy("sts:AssumeRole", "acs:ram:*:*:role/*")]),
    "taking on a role of any account": (
        "alicloud-privilege-escalation",
        [policy("sts:AssumeRole", "acs:ram:*:*:role/a")],
    ),
    "tokens for others": ("alicloud-federated-subjects", [for_pods(sub="system:serviceaccount:research:loader")]),
    "objects for everybody": ("alicloud-private-bucket-policy", [bucket_policy(Principal=["*"])]),
    "objects for everybody but one": ("alicloud-private-bucket-policy", [bucket_policy(NotPrincipal=["1"])]),
    "every action on objects": (
        "alicloud-private-bucket-policy",
        [bucket_policy(Principal=["1234567890123456"], Action=["oss:*"])],
    ),
    "every object to read": (
        "alicloud-no-broad-policy",
        [made(rights.ATTACHMENTS[0], policyName="AliyunOSSReadOnlyAccess", policyType="System")],
    ),
    "an administrator": (
        "alicloud-no-broad-policy",
        [made(rights.ATTACHMENTS[0], policyName="AdministratorAccess", policyType="System")],
    ),
    "all of ECS": (
        "alicloud-no-broad-policy",
        [made(rights.ATTACHMENTS[0], policyName="AliyunECSFullAccess", policyType="System")],
    ),
    "an access key": ("alicloud-no-lasting-credentials", [made(keeping.LASTING[0])]),
    "a secret in user data": ("secrets-in-user-data", [machine(userData=f"export KEY={LEAK}")]),
    "a provider's secret": ("provider-credentials", [made(PROVIDER, region="cn-beijing", secretKey="x")]),
    "a provider without a region": ("provider-region", [made(PROVIDER)]),
    "a provider over plain HTTP": ("provider-over-tls", [made(PROVIDER, region="cn-beijing", protocol="HTTP")]),
    "the default provider": ("explicit-provider", [made(nodes.INSTANCE, provider="urn::default_4_0_0", tags=TAGS)]),
    "a machine that nobody finds": ("required-tags", [machine(tags=None)]),
}
VPC_LOGGED = [made(network.VPC, tags=TAGS), made(network.FLOW_LOG, resourceId="${it.id}")]
SECURE: dict[str, list[Resource]] = {
    "SSH from a named network": [opened()],
    "SSH from an office by IPv6": [opened(cidrIp=None, ipv6CidrIp="2001:db8::/32")],
    "the web from everywhere": [opened(portRange="443/443", cidrIp="0.0.0.0/0")],
    "a way out": [opened(type="egress", cidrIp="0.0.0.0/0")],
    "a rule that drops": [opened(policy="drop", cidrIp="0.0.0.0/0")],
    "a network with its log": VPC_LOGGED,
    "a machine": [machine()],
    "a machine with bandwidth 0": [machine(internetMaxBandwidthOut=0)],
    "a template": [template()],
    "a scaling configuration, which knows no tokens": [configuration()],
    "a pool": [pool()],
    "a mix that ends": [mix()],
    "spot with its limit": [machine(spotStrategy="SpotWithPriceLimit", spotPriceLimit=9.0)],
    "spot at the market's price": [machine(spotStrategy="SpotAsPriceGo")],
    "an assurance that is protected": [made(nodes.ASSURANCE, protect=True, tags=TAGS)],
    "an address of a NAT gateway": [made(nodes.ADDRESS, instanceType="Nat", instanceId="ngw-1")],
    "a cluster in its network": [cluster()],
    "an encrypted queue": [made(network.QUEUE, enableSse=True)],
    "an encrypted log": [made(network.LOG_STORE, encryptConf={"enable": True})],
    "a bucket": bucket(),
    "a bucket that may go": bucket(forceDestroy=True, tags={**TAGS, keeping.REMOVABLE: "true"}),
    "a key": [made(keeping.KEY, automaticRotation="Enabled", pendingWindowInDays=30, tags=TAGS)],
    "named actions": [policy(["oss:GetObject"])],
    "what knows no resource": [policy("ecs:DescribeInstances", "*")],
    "a role for machines": [role({"Service": ["ecs.aliyuncs.com"]})],
    "another account with an external id": [
        role({"RAM": ["acs:ram::9999888877776666:root"]}, Condition={"StringEquals": {"sts:ExternalId": "f3a9"}})
    ],
    "pods of one account": [for_pods(sub="system:serviceaccount:research:loader", aud="sts.aliyuncs.com")],
    "pods that use their prefix": pods_with("oss:PutObject", f"{DATA}/research/*"),
    "pods that list their prefix": pods_with(
        "oss:ListObjects", DATA, Condition={"StringLike": {"oss:Prefix": "research/*"}}
    ),
    "pods that use a key": pods_with("kms:Decrypt", "acs:kms:cn-beijing:*:key/k-1"),
    "objects for one account": [bucket_policy(Principal=["1234567890123456"])],
    "objects for a network": [
        bucket_policy(Principal=["*"], Condition={"StringEquals": {"acs:SourceVpc": ["vpc-bp1"]}})
    ],
    "commands on one machine": [policy("ecs:RunCommand", "acs:ecs:*:*:instance/i-bp1")],
    "taking on a named role": [policy("sts:AssumeRole", "acs:ram::1234567890123456:role/gpufleet-x-storage")],
    "a role for another role": [role({"RAM": ["acs:ram::${id}:role/gpufleet-x-nodes"]})],
    "passing a named role": [policy("ram:PassRole", "acs:ram:*:*:role/gpufleet-node")],
    "a policy of our own": [made(rights.ATTACHMENTS[0], policyName="gpufleet-x", policyType="Custom")],
    "a provider": [made(PROVIDER, region="cn-beijing")],
}


def refused(resources: list[Resource]) -> set[str]:
    return {finding.rule for finding in check(resources)}


@pytest.mark.parametrize("case", INSECURE)
def test_an_insecure_variant_of_alibaba_cloud_is_refused_by_its_rule(case: str) -> None:
    rule, resources = INSECURE[case]

    assert rule in refused(resources)


@pytest.mark.parametrize("case", SECURE)
def test_a_secure_variant_of_alibaba_cloud_is_accepted(case: str) -> None:
    assert check(SECURE[case]) == ()


def test_every_rule_of_alibaba_cloud_has_a_case_that_it_refuses() -> None:
    own = {name for name in rules() if name.startswith("alicloud-")}

    assert own - {rule for rule, _ in INSECURE.values()} == set()
