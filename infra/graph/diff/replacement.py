"""What cannot be changed where it stands: the inputs whose change makes the engine create anew and remove the old.

Sources: the API references of EC2, EKS, FSx, IAM, S3, SQS, EventBridge and CloudWatch Logs: inputs of a Create call
that no Modify, Update or Put call takes, of the types that this project declares; for nodes on this computer their own
provider. What is not here may be replaced all the same: the engine's preview asks the provider itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from typing import Any

from infra.clouds.local.provider import NODE_REPLACES, SITE_REPLACES

Row = Mapping[str, Any]

REPLACES: dict[str, Collection[str]] = {
    "aws:ec2/eip:Eip": ("domain",),
    "aws:ec2/flowLog:FlowLog": (
        "deliverCrossAccountRole",
        "iamRoleArn",
        "logDestination",
        "logDestinationType",
        "maxAggregationInterval",
        "trafficType",
        "vpcId",
    ),
    "aws:ec2/fleet:Fleet": ("type", "spotOptions", "onDemandOptions"),
    "aws:ec2/instance:Instance": ("ami", "availabilityZone", "keyName", "subnetId"),
    "aws:ec2/keyPair:KeyPair": ("keyName", "publicKey"),
    "aws:ec2/launchTemplate:LaunchTemplate": ("name",),
    "aws:ec2/natGateway:NatGateway": ("allocationId", "connectivityType", "subnetId"),
    "aws:ec2/placementGroup:PlacementGroup": ("name", "partitionCount", "strategy"),
    "aws:ec2/route:Route": ("destinationCidrBlock", "destinationIpv6CidrBlock", "routeTableId"),
    "aws:ec2/routeTable:RouteTable": ("vpcId",),
    "aws:ec2/routeTableAssociation:RouteTableAssociation": ("subnetId",),
    "aws:ec2/securityGroup:SecurityGroup": ("description", "name", "vpcId"),
    "aws:ec2/subnet:Subnet": ("availabilityZone", "cidrBlock", "vpcId"),
    "aws:ec2/vpc:Vpc": ("cidrBlock",),
    "aws:ec2/vpcEndpoint:VpcEndpoint": ("serviceName", "vpcEndpointType", "vpcId"),
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": ("securityGroupId",),
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": ("securityGroupId",),
    "aws:cloudwatch/eventRule:EventRule": ("eventBusName", "name"),
    "aws:cloudwatch/logGroup:LogGroup": ("name",),
    "aws:eks/cluster:Cluster": ("name", "roleArn"),
    "aws:eks/nodeGroup:NodeGroup": ("amiType", "capacityType", "diskSize", "instanceTypes", "nodeRoleArn", "subnetIds"),
    "aws:fsx/lustreFileSystem:LustreFileSystem": (
        "deploymentType",
        "efaEnabled",
        "kmsKeyId",
        "securityGroupIds",
        "storageType",
        "subnetIds",
    ),
    "aws:iam/instanceProfile:InstanceProfile": ("name", "path"),
    "aws:iam/role:Role": ("name", "path"),
    "aws:s3/bucket:Bucket": ("bucket",),
    "aws:s3/bucketObjectv2:BucketObjectv2": ("bucket", "key"),
    "aws:sqs/queue:Queue": ("fifoQueue", "name"),
    "pulumi-python:dynamic/gpufleet:Node": NODE_REPLACES,
    "pulumi-python:dynamic/gpufleet:Site": SITE_REPLACES,
}


def replaces(row: Row, path: str) -> bool:
    """Whether a change of the input at `path` replaces the resource."""
    return path.replace("[", ".").partition(".")[0] in REPLACES.get(row["type"], ())


def carried_along(rows: Sequence[Row], replaced: set[str]) -> dict[str, list[str]]:
    """The resources that are replaced because one is that they were made from: their URNs, and the inputs that say so.

    replaced: URNs to begin with. It goes on as long as it finds more: with a VPC its subnets, with them what stands in
    them.
    """
    found: dict[str, list[str]] = {}
    while True:
        gone = replaced | found.keys()
        more = {
            row["urn"]: inputs
            for row in rows
            if row["urn"] not in gone and (inputs := [key for key in _made_of(row, gone) if replaces(row, key)])
        }
        if not more:
            return found
        found |= more


def _made_of(row: Row, gone: Set[str]) -> list[str]:
    """The inputs that hold something of resources that will be gone."""
    return [key for key, urns in row["property_dependencies"].items() if not gone.isdisjoint(urns)]
