"""Rendered inputs that the policy must refuse, and such that it must accept: one thing differs from a sound one."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from typing import Any

from infra.graph.policy import Resource

PROVIDER_URN = "urn:pulumi:x::gpufleet::pulumi:providers:aws::aws"
TAGS = {"gpufleet:stack": "x", "gpufleet:name": "y"}
Cases = dict[str, tuple[str, list[Resource]]]  # by what they do: the rule it is about, and the resources

GROUP = "aws:ec2/securityGroup:SecurityGroup"
DEFAULT_GROUP = "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup"
OLD_RULE = "aws:ec2/securityGroupRule:SecurityGroupRule"
INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
EGRESS = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
INSTANCE = "aws:ec2/instance:Instance"
SPOT_INSTANCE = "aws:ec2/spotInstanceRequest:SpotInstanceRequest"
FLEET = "aws:ec2/fleet:Fleet"
SCALING = "aws:autoscaling/group:Group"
BUCKET = "aws:s3/bucket:Bucket"
BLOCK = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"
BUCKET_POLICY = "aws:s3/bucketPolicy:BucketPolicy"
ROLE_POLICY = "aws:iam/rolePolicy:RolePolicy"
ROLE = "aws:iam/role:Role"
ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
KEY = "aws:kms/key:Key"
QUEUE_POLICY = "aws:sqs/queuePolicy:QueuePolicy"
SUBNET = "aws:ec2/subnet:Subnet"
VOLUME = "aws:ebs/volume:Volume"


def made(kind: str, name: str = "it", *, provider: str = PROVIDER_URN, **inputs: Any) -> Resource:
    return Resource(type=kind, name=name, urn=f"urn:{kind}::{name}", inputs=inputs, provider=provider)


def of(rule: str, *resources: Resource) -> tuple[str, list[Resource]]:
    return rule, list(resources)


def ssh(kind: str, name: str = "it", **inputs: Any) -> tuple[str, list[Resource]]:
    inputs = {"tags": TAGS, **inputs} if kind == GROUP else inputs
    return of("ssh-from-the-world", made(kind, name, **inputs))


def opened(name: str = "it", **inputs: Any) -> Resource:
    return made(INGRESS, name, **{"ipProtocol": "tcp", "fromPort": 22.0, "toPort": 22.0, **inputs})


def inline(**inputs: Any) -> dict[str, Any]:
    return {"protocol": "tcp", "fromPort": 22, "toPort": 22, **inputs}


def template(**inputs: Any) -> Resource:
    """A sound launch template but for these inputs; one that is None is left out."""
    sound: dict[str, Any] = {
        "tags": TAGS,
        "metadataOptions": {"httpEndpoint": "enabled", "httpTokens": "required", "httpPutResponseHopLimit": 2.0},
        "blockDeviceMappings": [{"deviceName": "/dev/sda1", "ebs": {"encrypted": "true", "volumeSize": 50}}],
        "networkInterfaces": [{"deviceIndex": 0, "associatePublicIpAddress": "false"}],
        "tagSpecifications": [{"resourceType": kind, "tags": TAGS} for kind in ("instance", "volume")],
    }
    return made(TEMPLATE, **{key: value for key, value in {**sound, **inputs}.items() if value is not None})


def instance(**inputs: Any) -> Resource:
    sound = {"tags": TAGS, "launchTemplate": {"id": "lt-1", "version": "$Default"}}
    return made(INSTANCE, **{key: value for key, value in {**sound, **inputs}.items() if value is not None})


def fleet(**inputs: Any) -> Resource:
    sound: dict[str, Any] = {
        "tags": TAGS,
        "terminateInstances": True,
        "targetCapacitySpecification": {"defaultTargetCapacityType": "spot", "totalTargetCapacity": 4},
        "launchTemplateConfigs": [{"overrides": [{"instanceType": "p4d.24xlarge", "maxPrice": "14"}]}],
    }
    return made(FLEET, **{key: value for key, value in {**sound, **inputs}.items() if value is not None})


def scaling(**distribution: Any) -> Resource:
    tags = [{"key": key, "value": value, "propagateAtLaunch": False} for key, value in TAGS.items()]
    return made(SCALING, tags=tags, mixedInstancesPolicy={"instancesDistribution": distribution})


def policy(effect: str = "Allow", **statement: Any) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": effect, **statement}]})


def permissions(**statement: Any) -> Resource:
    return made(ROLE_POLICY, policy=policy(**{"Action": "s3:GetObject", "Resource": "arn:aws:s3:::a/*", **statement}))


def key(**inputs: Any) -> Resource:
    return made(KEY, **{"tags": TAGS, "enableKeyRotation": True, **inputs})


def bucket(*, block: dict[str, Any] | None = None, guard: str | None = None, **inputs: Any) -> list[Resource]:
    """A bucket with its public-access block and its TLS-only policy, but for what is given."""
    switches = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
    return [
        made(BUCKET, "data", tags=TAGS, **inputs),
        made(BLOCK, "private", bucket="${data.id}", **{**dict.fromkeys(switches, True), **(block or {})}),
        made(BUCKET_POLICY, "tls", bucket="${data.id}", policy=tls_only() if guard is None else guard),
    ]


def tls_only(**changed: Any) -> str:
    sound = {
        "Principal": "*",
        "Action": "s3:*",
        "Resource": ["arn:aws:s3:::data", "arn:aws:s3:::data/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    return policy(**{"effect": "Deny", **sound, **changed})


def script(text: str, *, packed: bool = False) -> str:
    return b64encode(gzip.compress(text.encode()) if packed else text.encode()).decode()


WORLD, HALVES = "0.0.0.0/0", ("0.0.0.0/1", "128.0.0.0/1")
QUARTERS = ("0.0.0.0/2", "64.0.0.0/2", "128.0.0.0/2", "192.0.0.0/2")
SPREAD = [f"{first}.0.0.0/8" for first in range(1, 20, 2)]
ROOT_DISK = {"deviceName": "/dev/sda1", "ebs": {"volumeSize": 50}}
GITHUB = "ghp_" + "a1B2" * 9
PEM = "-----BEGIN OPENSSH " + "PRIVATE KEY-----"
ACCESS_KEY = "AKIA" + "ABCDEFGHIJKLMNOP"

INSECURE: Cases = {
    # SSH
    "a rule open to the world": of("ssh-from-the-world", opened(cidrIpv4=WORLD)),
    "a rule open to the IPv6 world": of("ssh-from-the-world", opened(cidrIpv6="::/0")),
    "all traffic from the world": of("ssh-from-the-world", made(INGRESS, ipProtocol="-1", cidrIpv4=WORLD)),
    "all ports from the world": of("ssh-from-the-world", opened(fromPort=0, toPort=65535, cidrIpv4=WORLD)),
    "a range over 22": of("ssh-from-the-world", opened(fromPort=20, toPort=25, cidrIpv4=WORLD)),
    "ports as text": of("ssh-from-the-world", opened(fromPort="22", toPort="22", cidrIpv4=WORLD)),
    "TCP by its number": of("ssh-from-the-world", opened(ipProtocol="6", cidrIpv4=WORLD)),
    "the world by an odd address": of("ssh-from-the-world", opened(cidrIpv4="203.0.113.7/0")),
    "half of the world": of("ssh-from-the-world", opened(cidrIpv4="128.0.0.0/1")),
    "halves in two rules": of("ssh-from-the-world", *(opened(f"r{i}", cidrIpv4=half) for i, half in enumerate(HALVES))),
    "quarters in an inline rule": ssh(GROUP, ingress=[inline(cidrBlocks=list(QUARTERS))]),
    "IPv6 halves": of("ssh-from-the-world", opened("a", cidrIpv6="::/1"), opened("b", cidrIpv6="8000::/1")),
    "all of the IPv6 internet": of("ssh-from-the-world", opened(cidrIpv6="2000::/3")),
    "ten scattered eighths": of("ssh-from-the-world", *(opened(one, cidrIpv4=one) for one in SPREAD)),
    "a prefix list": of("ssh-from-the-world", opened(prefixListId="pl-0123456789abcdef0")),
    "a CIDR that is not known": of("ssh-from-the-world", opened(cidrIpv4="[unknown]")),
    "a secret CIDR": of("ssh-from-the-world", opened(cidrIpv4="[secret]")),
    "unknown ports": of("ssh-from-the-world", opened(fromPort="[unknown]", toPort="[unknown]", cidrIpv4=WORLD)),
    "an inline rule open to the world": ssh(GROUP, ingress=[inline(cidrBlocks=["10.0.0.0/8", WORLD])]),
    "an inline IPv6 rule": ssh(GROUP, ingress=[inline(ipv6CidrBlocks=["::/0"])]),
    "all inline traffic": ssh(GROUP, ingress=[inline(protocol="-1", fromPort=0, toPort=0, cidrBlocks=[WORLD])]),
    "an inline prefix list": ssh(GROUP, ingress=[inline(prefixListIds=["pl-1"])]),
    "an inline ingress that is not known": ssh(GROUP, ingress="[unknown]"),
    "an open default group": ssh(DEFAULT_GROUP, ingress=[inline(protocol="all", cidrBlocks=[WORLD])]),
    "an old rule resource": ssh(OLD_RULE, type="ingress", **inline(cidrBlocks=[WORLD])),
    "an old rule, all traffic": ssh(OLD_RULE, type="ingress", protocol="-1", fromPort=0, toPort=0, cidrBlocks=[WORLD]),
    # metadata
    "tokens optional": of("imdsv2", template(metadataOptions={"httpTokens": "optional", "httpPutResponseHopLimit": 2})),
    "no metadata options": of("imdsv2", template(metadataOptions=None)),
    "no hop limit": of("imdsv2", template(metadataOptions={"httpTokens": "required"})),
    "many hops": of("imdsv2", template(metadataOptions={"httpTokens": "required", "httpPutResponseHopLimit": 64})),
    "unknown metadata options": of("imdsv2", template(metadataOptions="[unknown]")),
    "an instance with its own weak options": of("imdsv2", instance(metadataOptions={"httpTokens": "optional"})),
    "an instance without template": of("imdsv2", instance(launchTemplate=None, rootBlockDevice={"encrypted": True})),
    # disks and keys
    "a plain root volume": of("encrypted-volumes", template(blockDeviceMappings=[ROOT_DISK])),
    "a second, plain volume": of(
        "encrypted-volumes",
        template(blockDeviceMappings=[{"ebs": {"encrypted": "true"}}, {"ebs": {"encrypted": "false"}}]),
    ),
    "no volume named": of("encrypted-volumes", template(blockDeviceMappings=None)),
    "only local disks named": of("encrypted-volumes", template(blockDeviceMappings=[{"virtualName": "ephemeral0"}])),
    "a plain instance volume": of(
        "encrypted-instance-volumes", instance(ebsBlockDevices=[{"deviceName": "/dev/sdf"}], rootBlockDevice={})
    ),
    "a plain volume": of("encrypted-storage", made(VOLUME, tags=TAGS, size=10)),
    "a key that never rotates": of("kms-rotation", key(enableKeyRotation=False)),
    "a key that does not say": of("kms-rotation", made(KEY, tags=TAGS)),
    # addresses
    "a public interface": of("public-address", template(networkInterfaces=[{"associatePublicIpAddress": "true"}])),
    "a public instance": of("public-address", instance(associatePublicIpAddress=True)),
    "an address that is not known": of(
        "public-address", template(networkInterfaces=[{"associatePublicIpAddress": "[unknown]"}])
    ),
    "an entrance with two interfaces": of(
        "public-address",
        template(
            tags={**TAGS, "gpufleet:entrance": "true"},
            networkInterfaces=[{"associatePublicIpAddress": "true"}, {"interfaceType": "efa-only"}],
        ),
    ),
    "a public subnet": of("public-by-default", made(SUBNET, tags=TAGS, mapPublicIpOnLaunch=True)),
    # permissions
    "every action": of("wildcard-actions", permissions(Action="*")),
    "every action of a service": of("wildcard-actions", permissions(Action=["s3:GetObject", "ec2:*"])),
    "actions by a pattern": of("wildcard-actions", permissions(Action="s3:Put*")),
    "all actions but some": of("wildcard-actions", made(ROLE_POLICY, policy=policy(NotAction="iam:*", Resource="*"))),
    "all resources but some": of(
        "wildcard-actions", made(ROLE_POLICY, policy=policy(Action="s3:GetObject", NotResource="arn:aws:s3:::a"))
    ),
    "passing any role": of("wildcard-actions", permissions(Action="iam:PassRole", Resource="*")),
    "a policy that is not known": of("wildcard-actions", made(ROLE_POLICY, policy="[unknown]")),
    "an inline policy of a role": of(
        "wildcard-role",
        made(
            ROLE,
            tags=TAGS,
            assumeRolePolicy=policy(Action="sts:AssumeRole", Principal={"Service": "ec2.amazonaws.com"}),
            inlinePolicies=[{"policy": policy(Action="*", Resource="*")}],
        ),
    ),
    "a role for everybody": of(
        "wildcard-role",
        made(ROLE, tags=TAGS, assumeRolePolicy=policy(Action="sts:AssumeRole", Principal={"AWS": "*"})),
    ),
    "an administrator": of(
        "broad-managed-policy", made(ATTACHMENT, policyArn="arn:aws:iam::aws:policy/AdministratorAccess")
    ),
    "full access to a service": of(
        "broad-managed-policy", made(ATTACHMENT, policyArn="arn:aws:iam::aws:policy/AmazonS3FullAccess")
    ),
    "a key for everybody": of(
        "wildcard-principals", key(policy=policy(Action="kms:Decrypt", Resource="*", Principal={"AWS": "*"}))
    ),
    "a key with all actions for a service": of(
        "wildcard-principals",
        key(policy=policy(Action="kms:*", Resource="*", Principal={"Service": "logs.amazonaws.com"})),
    ),
    "a queue for everybody": of(
        "wildcard-principals",
        made(QUEUE_POLICY, policy=policy(Action="sqs:SendMessage", Resource="*", Principal="*")),
    ),
    "a queue for everybody by a hollow condition": of(
        "wildcard-principals",
        made(
            QUEUE_POLICY,
            policy=policy(
                Action="sqs:SendMessage",
                Resource="*",
                Principal="*",
                Condition={"ArnLike": {"aws:SourceArn": "*"}},
            ),
        ),
    ),
    "all principals but some": of(
        "wildcard-principals",
        made(QUEUE_POLICY, policy=policy(Action="sqs:SendMessage", Resource="*", NotPrincipal={"AWS": "1"})),
    ),
    # buckets
    "a bucket without a block": of("private-bucket", *(r for r in bucket() if r.type != BLOCK)),
    "a bucket with a public list": of("private-bucket", *bucket(acl="public-read")),
    "a block with a switch off": of("public-access-block", *bucket(block={"blockPublicPolicy": False})),
    "a bucket without TLS policy": of("tls-only-bucket", *(r for r in bucket() if r.type != BUCKET_POLICY)),
    "a TLS policy for one action": of("tls-only-bucket", *bucket(guard=tls_only(Action="s3:GetObject"))),
    "a TLS policy for one principal": of("tls-only-bucket", *bucket(guard=tls_only(Principal={"AWS": "1"}))),
    "a TLS policy under one more condition": of(
        "tls-only-bucket",
        *bucket(guard=tls_only(Condition={"Bool": {"aws:SecureTransport": "false", "aws:ViaAWSService": "true"}})),
    ),
    "a bucket open to everybody": of(
        "wildcard-principals",
        *bucket(guard=policy(Action="s3:GetObject", Resource="arn:aws:s3:::data/*", Principal="*")),
    ),
    # price and end
    "a spot template without cap": of("spot-price-cap", template(instanceMarketOptions={"marketType": "spot"})),
    "a spot request without cap": of("spot-request-price-cap", made(SPOT_INSTANCE)),
    "a spot fleet without cap": of("fleet-price-cap", fleet(launchTemplateConfigs=[{"overrides": [{}]}])),
    "a spot fleet without overrides": of("fleet-price-cap", fleet(launchTemplateConfigs=[{}])),
    "a mixed fleet without cap": of(
        "fleet-price-cap",
        fleet(
            targetCapacitySpecification={"defaultTargetCapacityType": "on-demand", "spotTargetCapacity": 2},
            launchTemplateConfigs=[{"overrides": [{"instanceType": "g6.xlarge"}]}],
        ),
    ),
    "a scaling group without cap": of("group-price-cap", scaling(onDemandPercentageAboveBaseCapacity=0)),
    "a fleet that outlives its stack": of("fleet-ends-with-the-stack", fleet(terminateInstances=None)),
    # where and whose
    "no provider": of("explicit-provider", made(SUBNET, tags=TAGS, provider="")),
    "the default provider": of(
        "explicit-provider",
        made(SUBNET, tags=TAGS, provider="urn:pulumi:x::gpufleet::pulumi:providers:aws::default_7_51_1"),
    ),
    "a provider without region": of(
        "provider-region", Resource(type="pulumi:providers:aws", name="aws", urn=PROVIDER_URN)
    ),
    "a bucket without tags": of("required-tags", made(BUCKET, "data")),
    "a scaling group without tags": of("required-group-tags", made(SCALING)),
    "nodes without tags": of("tags-on-what-templates-make", template(tagSpecifications=None)),
    "volumes without tags": of(
        "tags-on-what-templates-make", template(tagSpecifications=[{"resourceType": "instance", "tags": TAGS}])
    ),
    # user data
    "an access key": of("secrets-in-user-data", template(userData=script(f"export KEY_ID={ACCESS_KEY}"))),
    "a private key": of("secrets-in-user-data", template(userData=script(f"cat <<E\n{PEM}\nE"))),
    "a password": of("secrets-in-user-data", template(userData=script("DB_PASSWORD='hunter2hunter2'"))),
    "a token, compressed": of("secrets-in-user-data", template(userData=script(f"x {GITHUB}", packed=True))),
    "a token, in plain": of("secrets-in-user-data", instance(userData=f"#!/bin/sh\nlogin {GITHUB}")),
    "a password in an address": of("secrets-in-user-data", template(userData=script("git clone https://me:pw0rd@h/r"))),
    "a secret in JSON": of("secrets-in-user-data", template(userData=script('{"api_key": "0123456789abcdef"}'))),
}

SECURE: dict[str, list[Resource]] = {
    "a named network": [opened(cidrIpv4="203.0.113.0/24")],
    "a named IPv6 network": [opened(cidrIpv6="2001:db8:40::/48")],
    "private ranges": [opened(one, cidrIpv4=one) for one in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")],
    "a group as the peer": [opened(referencedSecurityGroupId="sg-1")],
    "all traffic from the group itself": [made(INGRESS, ipProtocol="-1", referencedSecurityGroupId="sg-1")],
    "HTTPS for the world": [opened(fromPort=443, toPort=443, cidrIpv4=WORLD)],
    "UDP for the world": [opened(ipProtocol="udp", cidrIpv4=WORLD)],
    "ping for the world": [made(INGRESS, ipProtocol="icmp", fromPort=8, toPort=-1, cidrIpv4=WORLD)],
    "SSH out": [made(EGRESS, ipProtocol="tcp", fromPort=22, toPort=22, cidrIpv4=WORLD)],
    "an old rule out": [made(OLD_RULE, type="egress", **inline(cidrBlocks=[WORLD]))],
    "an inline rule for a named network": [made(GROUP, tags=TAGS, ingress=[inline(cidrBlocks=["203.0.113.0/24"])])],
    "an emptied default group": [made(DEFAULT_GROUP, ingress=[], egress=[])],
    "a sound template": [template()],
    "a template for hosts only": [
        template(metadataOptions={"httpTokens": "required", "httpPutResponseHopLimit": 1}),
    ],
    "no metadata service at all": [template(metadataOptions={"httpEndpoint": "disabled"})],
    "a local disk beside the root": [
        template(blockDeviceMappings=[{"ebs": {"encrypted": "true"}}, {"virtualName": "ephemeral0"}])
    ],
    "an instance of a template": [instance()],
    "an entrance": [
        template(
            networkInterfaces=[{"associatePublicIpAddress": "true"}],
            tagSpecifications=[
                {"resourceType": kind, "tags": {**TAGS, "gpufleet:entrance": "true"}} for kind in ("instance", "volume")
            ],
        )
    ],
    "a fabric of five interfaces": [template(networkInterfaces=[{}, *[{"interfaceType": "efa-only"}] * 4])],
    "named actions": [permissions(Action=["s3:GetObject", "s3:PutObject"])],
    "actions that know no resource": [permissions(Action="ec2:DescribeInstances", Resource="*")],
    "a wildcard that denies": [made(ROLE_POLICY, policy=policy("Deny", Action="*", Resource="*"))],
    "a role for a service": [
        made(
            ROLE,
            tags=TAGS,
            assumeRolePolicy=policy(Action="sts:AssumeRole", Principal={"Service": "ec2.amazonaws.com"}),
        )
    ],
    "a narrow managed policy": [made(ATTACHMENT, policyArn="arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore")],
    "a key for its account": [
        key(policy=policy(Action="kms:*", Resource="*", Principal={"AWS": "arn:aws:iam::${vpc.ownerId}:root"}))
    ],
    "a key for callers of the account": [
        key(
            policy=policy(
                Action=["kms:Decrypt"],
                Resource="*",
                Principal={"AWS": "*"},
                Condition={"StringEquals": {"kms:CallerAccount": "123456789012"}},
            )
        )
    ],
    "an asymmetric key": [made(KEY, tags=TAGS, customerMasterKeySpec="RSA_4096")],
    "a queue for a rule": [
        made(
            QUEUE_POLICY,
            policy=policy(
                Action="sqs:SendMessage",
                Resource="*",
                Principal={"Service": "events.amazonaws.com"},
                Condition={"ArnEquals": {"aws:SourceArn": ["arn:aws:events:us-east-1:123456789012:rule/a"]}},
            ),
        )
    ],
    "a sound bucket": bucket(),
    "a capped spot fleet": [fleet()],
    "a fleet capped as a whole": [
        fleet(spotOptions={"maxTotalPrice": "50"}, launchTemplateConfigs=[{"overrides": [{}]}])
    ],
    "an on-demand fleet": [
        fleet(
            targetCapacitySpecification={"defaultTargetCapacityType": "on-demand", "totalTargetCapacity": 4},
            launchTemplateConfigs=[{}],
        )
    ],
    "a capped spot template": [
        template(instanceMarketOptions={"marketType": "spot", "spotOptions": {"maxPrice": "1.2"}})
    ],
    "a capacity block": [template(instanceMarketOptions={"marketType": "capacity-block"})],
    "a capped scaling group": [scaling(onDemandPercentageAboveBaseCapacity=0, spotMaxPrice="0.6")],
    "an on-demand scaling group": [scaling(onDemandPercentageAboveBaseCapacity=100)],
    "tags from the provider": [
        Resource(
            type="pulumi:providers:aws",
            name="aws",
            urn=PROVIDER_URN,
            inputs={"region": "us-east-1", "defaultTags": json.dumps({"tags": TAGS})},
        ),
        made("aws:ec2/vpc:Vpc", cidrBlock="10.0.0.0/16"),
    ],
    "user data that asks for a token": [
        template(userData=script('TOKEN=$(curl -X PUT "$I/token")\ncurl -H "X-aws-ec2-metadata-token: $TOKEN"'))
    ],
    "user data with a hash": [template(userData=script('{"sha256": "' + "0123456789abcdef" * 4 + '"}'))],
    "another cloud's resource": [made("alicloud:vpc/network:Network")],
}
