"""Rendered resources as the policy reads them: sound ones, of which a case changes one thing."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from dataclasses import replace
from typing import Any

from infra.policy import Resource

PROVIDER_URN = "urn:pulumi:x::gpufleet::pulumi:providers:aws::aws"
TAGS = {"gpufleet:stack": "x", "gpufleet:name": "y"}
Insecure = dict[str, tuple[str, list[Resource]]]  # by what they do: the rule it is about, and the resources
Secure = dict[str, list[Resource]]

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
VERSIONING = "aws:s3/bucketVersioning:BucketVersioning"
LUSTRE = "aws:fsx/lustreFileSystem:LustreFileSystem"
SHOWN_BUCKET = "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation"
EFS = "aws:efs/fileSystem:FileSystem"
ROLE_POLICY = "aws:iam/rolePolicy:RolePolicy"
ROLE = "aws:iam/role:Role"
ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
KEY = "aws:kms/key:Key"
QUEUE_POLICY = "aws:sqs/queuePolicy:QueuePolicy"
SUBNET = "aws:ec2/subnet:Subnet"
VOLUME = "aws:ebs/volume:Volume"
QUEUE, TOPIC = "aws:sqs/queue:Queue", "aws:sns/topic:Topic"
VPC, FLOW_LOG = "aws:ec2/vpc:Vpc", "aws:ec2/flowLog:FlowLog"
ELASTIC_IP, ASSOCIATION = "aws:ec2/eip:Eip", "aws:ec2/eipAssociation:EipAssociation"
NETWORK_ACL = "aws:ec2/networkAcl:NetworkAcl"
DEFAULT_ACL = "aws:ec2/defaultNetworkAcl:DefaultNetworkAcl"
ACL_RULE = "aws:ec2/networkAclRule:NetworkAclRule"
EKS_CLUSTER, EKS_NODES = "aws:eks/cluster:Cluster", "aws:eks/nodeGroup:NodeGroup"
EKS_ADDON = "aws:eks/addon:Addon"
PURCHASE = "aws:ec2/capacityBlockReservation:CapacityBlockReservation"
PARAMETER = "aws:ssm/parameter:Parameter"
PROVIDER = "pulumi:providers:aws"


def made(
    kind: str, name: str = "it", *, provider: str = PROVIDER_URN, protect: bool = False, **inputs: Any
) -> Resource:
    urn = f"urn:{kind}::{name}"
    return Resource(type=kind, name=name, urn=urn, inputs=inputs, provider=provider, protect=protect)


def the_provider(**inputs: Any) -> Resource:
    return Resource(type=PROVIDER, name="aws", urn=PROVIDER_URN, inputs={"region": "us-east-1", **inputs})


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


def trust(**statement: Any) -> Resource:
    return made(ROLE, tags=TAGS, assumeRolePolicy=policy(**{"Action": "sts:AssumeRole", **statement}))


def acl(**entry: Any) -> dict[str, Any]:
    return {"ruleNo": 100, "action": "allow", "protocol": "tcp", "fromPort": 22, "toPort": 22, **entry}


def eks(*, encrypted: bool = True, **network: Any) -> Resource:
    encryption = {"resources": ["secrets"], "provider": {"keyArn": "arn:aws:kms:us-east-1:123456789012:key/1"}}
    inputs: dict[str, Any] = {"enabledClusterLogTypes": ["api", "audit"], "tags": TAGS}
    inputs |= {"encryptionConfig": encryption} if encrypted else {}
    return made(EKS_CLUSTER, vpcConfig={"subnetIds": ["a", "b"], **network}, **inputs)


ENFORCING = {"enableNetworkPolicy": "true"}


def network_plugin(settings: Any, name: str = "vpc-cni", cluster: Resource | None = None) -> Resource:
    """settings: as YAML, of which JSON is a part, or an object."""
    text = settings if isinstance(settings, str | None) else json.dumps(settings)
    addon = made(EKS_ADDON, "network", tags=TAGS, addonName=name, clusterName="x", configurationValues=text)
    return replace(addon, references={"clusterName": [(cluster or eks()).urn]})


def kubernetes_nodes(nodes: Resource | None = None, **options: Any) -> list[Resource]:
    """A managed node group, and the template that it is made of, with these metadata options."""
    made_from = template(metadataOptions={"httpTokens": "required", "httpPutResponseHopLimit": 1, **options})
    return [made_from, replace(nodes or eks_nodes(), references={"launchTemplate": [made_from.urn]})]


def eks_nodes(**inputs: Any) -> Resource:
    return made(EKS_NODES, **{"tags": TAGS, "launchTemplate": {"id": "lt-1", "version": "1"}, **inputs})


def policy(effect: str = "Allow", **statement: Any) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": effect, **statement}]})


def permissions(**statement: Any) -> Resource:
    return made(ROLE_POLICY, policy=policy(**{"Action": "s3:GetObject", "Resource": "arn:aws:s3:::a/*", **statement}))


def key(**inputs: Any) -> Resource:
    return made(KEY, **{"tags": TAGS, "enableKeyRotation": True, **inputs})


def bucket(
    *, block: dict[str, Any] | None = None, guard: str | None = None, versions: str = "Enabled", **inputs: Any
) -> list[Resource]:
    """A bucket with its public-access block, its versions and its TLS-only policy, but for what is given."""
    switches = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
    return [
        made(BUCKET, "data", **{"tags": TAGS, **inputs}),
        made(BLOCK, "private", bucket="${data.id}", **{**dict.fromkeys(switches, True), **(block or {})}),
        made(VERSIONING, "versions", bucket="${data.id}", versioningConfiguration={"status": versions}),
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
JWT = "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiJub2RlIn0.c2lnbmF0dXJl"
GITHUB_PROVIDER = "arn:aws:iam::123456789012:oidc-provider/token.actions.githubusercontent.com"
