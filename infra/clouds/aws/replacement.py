"""Inputs of AWS resources that cannot be changed where they stand: the engine creates anew and removes the old.

Sources: the API references of EC2, EKS, FSx, IAM, S3, SQS, EventBridge and CloudWatch Logs: inputs of a Create call
that no Modify, Update or Put call takes, of the types that this project declares.
"""

from __future__ import annotations

from collections.abc import Collection

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
}
