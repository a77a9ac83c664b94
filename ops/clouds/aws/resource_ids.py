"""How resources of Pulumi's AWS types are matched in the account: by tag, or by what they belong to.

Sources: Service Authorization Reference (the form of each ARN); the "Import" section of each resource's page of the
Terraform AWS provider (ids). A type that takes tags is matched by them; the others have an id that follows from the
resource that they are a part of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

TAGGED = {
    "aws:autoscaling/group:Group": "autoscaling/autoScalingGroup",
    "aws:budgets/budget:Budget": "budgets/budget",
    "aws:cloudwatch/eventRule:EventRule": "events/rule",
    "aws:cloudwatch/logGroup:LogGroup": "logs/log-group",
    "aws:ec2/capacityBlockReservation:CapacityBlockReservation": "ec2/capacity-reservation",
    "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup": "ec2/security-group",
    "aws:ec2/eip:Eip": "ec2/elastic-ip",
    "aws:ec2/fleet:Fleet": "ec2/fleet",
    "aws:ec2/flowLog:FlowLog": "ec2/vpc-flow-log",
    "aws:ec2/instance:Instance": "ec2/instance",
    "aws:ec2/internetGateway:InternetGateway": "ec2/internet-gateway",
    "aws:ec2/keyPair:KeyPair": "ec2/key-pair",
    "aws:ec2/launchTemplate:LaunchTemplate": "ec2/launch-template",
    "aws:ec2/natGateway:NatGateway": "ec2/natgateway",
    "aws:ec2/placementGroup:PlacementGroup": "ec2/placement-group",
    "aws:ec2/routeTable:RouteTable": "ec2/route-table",
    "aws:ec2/securityGroup:SecurityGroup": "ec2/security-group",
    "aws:ec2/subnet:Subnet": "ec2/subnet",
    "aws:ec2/vpc:Vpc": "ec2/vpc",
    "aws:ec2/vpcEndpoint:VpcEndpoint": "ec2/vpc-endpoint",
    "aws:eks/addon:Addon": "eks/addon",
    "aws:eks/cluster:Cluster": "eks/cluster",
    "aws:eks/nodeGroup:NodeGroup": "eks/nodegroup",
    "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation": "fsx/association",
    "aws:fsx/lustreFileSystem:LustreFileSystem": "fsx/file-system",
    "aws:iam/instanceProfile:InstanceProfile": "iam/instance-profile",
    "aws:iam/role:Role": "iam/role",
    "aws:kms/key:Key": "kms/key",
    "aws:s3/bucket:Bucket": "s3/bucket",
    "aws:sqs/queue:Queue": "sqs/queue",
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": "ec2/security-group-rule",
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": "ec2/security-group-rule",
}

# The property that the engine makes up a name for: a resource whose state does not say so is replaced at the next
# change (pulumi/pulumi-terraform-bridge#487).
NAMED = {
    "aws:autoscaling/group:Group": "name",
    "aws:autoscaling/policy:Policy": "name",
    "aws:budgets/budget:Budget": "name",
    "aws:cloudwatch/eventRule:EventRule": "name",
    "aws:cloudwatch/eventTarget:EventTarget": "targetId",
    "aws:cloudwatch/logGroup:LogGroup": "name",
    "aws:ec2/keyPair:KeyPair": "keyName",
    "aws:ec2/launchTemplate:LaunchTemplate": "name",
    "aws:ec2/placementGroup:PlacementGroup": "name",
    "aws:ec2/securityGroup:SecurityGroup": "name",
    "aws:eks/cluster:Cluster": "name",
    "aws:eks/nodeGroup:NodeGroup": "nodeGroupName",
    "aws:iam/instanceProfile:InstanceProfile": "name",
    "aws:iam/role:Role": "name",
    "aws:iam/rolePolicy:RolePolicy": "name",
    "aws:s3/bucket:Bucket": "bucket",
    "aws:sqs/queue:Queue": "name",
}


@dataclass(frozen=True)
class Arn:
    """An Amazon Resource Name, taken apart. kind: `<service>/<type of resource>`; rest: what names it there."""

    text: str
    service: str
    region: str
    account: str
    kind: str
    rest: str

    @classmethod
    def parse(cls, text: str) -> Arn:
        _, _, service, region, account, resource = text.split(":", 5)
        if service in BARE:
            return cls(text, service, region, account, f"{service}/{BARE[service]}", resource)
        end = min(i for i in (resource.find("/"), resource.find(":"), len(resource)) if i >= 0)
        return cls(text, service, region, account, f"{service}/{resource[:end]}", resource[end + 1 :])


BARE = {"s3": "bucket", "sqs": "queue"}  # services whose ARNs name one type of resource, and do not say which


def identifier(arn: Arn) -> str:
    """The id of the resource in Pulumi's state."""
    return IDS.get(arn.kind, _whole)(arn)


def _whole(arn: Arn) -> str:
    return arn.rest


def _last(arn: Arn) -> str:
    return arn.rest.rpartition("/")[2]


def _in_cluster(arn: Arn) -> str:
    """`<cluster>/<name>/<uuid>`"""
    return ":".join(arn.rest.split("/")[:2])


IDS: dict[str, Callable[[Arn], str]] = {
    "autoscaling/autoScalingGroup": _last,  # <uuid>:autoScalingGroupName/<name>
    "budgets/budget": lambda arn: f"{arn.account}:{arn.rest}",
    "eks/addon": _in_cluster,
    "eks/nodegroup": _in_cluster,
    "fsx/association": _last,  # <file system>/<association>
    "iam/instance-profile": _last,  # a path may stand before the name
    "iam/role": _last,
    "logs/log-group": lambda arn: arn.rest.removesuffix(":*"),
    "sqs/queue": lambda arn: f"https://sqs.{arn.region}.amazonaws.com/{arn.account}/{arn.rest}",
}
