"""Every input of every stack against AWS's own models of its API."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from api_model import Call
from graph_clusters import CLUSTERS
from rendered import REPOSITORY, shipped

from infra.graph import Graph, render, resources

VALUE = "AttributeBooleanValue.Value"
BUCKET = {"bucket": "CreateBucketRequest.Bucket"}
RULE = {
    "securityGroupId": "AuthorizeSecurityGroupIngressRequest.GroupId",
    "referencedSecurityGroupId": "SecurityGroupRuleRequest.ReferencedGroupId",
}
CALLS = {
    "autoscaling/group:Group": Call(
        "autoscaling",
        "CreateAutoScalingGroupType",
        {"vpcZoneIdentifiers": "CreateAutoScalingGroupType.VPCZoneIdentifier"},
    ),
    "autoscaling/policy:Policy": Call(
        "autoscaling",
        "PutScalingPolicyType",
        {
            "targetTrackingConfiguration.customizedMetricSpecification.metricDimensions": (
                "CustomizedMetricSpecification.Dimensions"
            )
        },
    ),
    "budgets/budget:Budget": Call(
        "budgets",
        "Budget",
        {
            "limitAmount": "Spend.Amount",
            "limitUnit": "Spend.Unit",
            "notifications": "Notification",
            "notifications.subscriberEmailAddresses": "Subscriber.Address",
        },
        frozenset({"costFilters"}),  # a map there, a list of names and values here
    ),
    "cloudwatch/eventRule:EventRule": Call("events", "PutRuleRequest"),
    "cloudwatch/eventTarget:EventTarget": Call("events", "Target PutTargetsRequest"),
    "cloudwatch/logGroup:LogGroup": Call(
        "logs", "CreateLogGroupRequest PutRetentionPolicyRequest", {"name": "CreateLogGroupRequest.logGroupName"}
    ),
    "ec2/capacityBlockReservation:CapacityBlockReservation": Call("ec2", "PurchaseCapacityBlockRequest"),
    "ec2/defaultSecurityGroup:DefaultSecurityGroup": Call("ec2", "SecurityGroup", own=frozenset({"ingress", "egress"})),
    "ec2/eip:Eip": Call("ec2", "AllocateAddressRequest"),
    "ec2/fleet:Fleet": Call("ec2", "CreateFleetRequest DeleteFleetsRequest"),
    "ec2/flowLog:FlowLog": Call(
        "ec2",
        "CreateFlowLogsRequest",
        {"iamRoleArn": "CreateFlowLogsRequest.DeliverLogsPermissionArn", "vpcId": "CreateFlowLogsRequest.ResourceIds"},
    ),
    "ec2/instance:Instance": Call(
        "ec2", "RunInstancesRequest", {"launchTemplate.id": "LaunchTemplateSpecification.LaunchTemplateId"}
    ),
    "ec2/internetGateway:InternetGateway": Call("ec2", "AttachInternetGatewayRequest"),
    "ec2/keyPair:KeyPair": Call("ec2", "ImportKeyPairRequest", {"publicKey": "ImportKeyPairRequest.PublicKeyMaterial"}),
    "ec2/launchTemplate:LaunchTemplate": Call(
        "ec2",
        "RequestLaunchTemplateData",
        {"networkInterfaces.securityGroups": "LaunchTemplateInstanceNetworkInterfaceSpecificationRequest.Groups"},
        frozenset({"updateDefaultVersion", "tagSpecifications.tags"}),
    ),
    "ec2/natGateway:NatGateway": Call("ec2", "CreateNatGatewayRequest"),
    "ec2/placementGroup:PlacementGroup": Call("ec2", "CreatePlacementGroupRequest"),
    "ec2/route:Route": Call("ec2", "CreateRouteRequest"),
    "ec2/routeTable:RouteTable": Call("ec2", "CreateRouteTableRequest"),
    "ec2/routeTableAssociation:RouteTableAssociation": Call("ec2", "AssociateRouteTableRequest"),
    "ec2/securityGroup:SecurityGroup": Call("ec2", "CreateSecurityGroupRequest"),
    "ec2/subnet:Subnet": Call("ec2", "CreateSubnetRequest", {"mapPublicIpOnLaunch": VALUE}),
    "ec2/vpc:Vpc": Call("ec2", "CreateVpcRequest", {"enableDnsSupport": VALUE, "enableDnsHostnames": VALUE}),
    "ec2/vpcEndpoint:VpcEndpoint": Call("ec2", "CreateVpcEndpointRequest"),
    "eks/accessEntry:AccessEntry": Call("eks", "CreateAccessEntryRequest"),
    "eks/accessPolicyAssociation:AccessPolicyAssociation": Call("eks", "AssociateAccessPolicyRequest"),
    "eks/addon:Addon": Call(
        "eks",
        "CreateAddonRequest",
        {
            "resolveConflictsOnCreate": "CreateAddonRequest.resolveConflicts",
            "resolveConflictsOnUpdate": "UpdateAddonRequest.resolveConflicts",
        },
    ),
    "eks/cluster:Cluster": Call(
        "eks",
        "CreateClusterRequest",
        {
            "enabledClusterLogTypes": "LogSetup.types",
            "vpcConfig": "VpcConfigRequest",
        },
    ),
    "eks/nodeGroup:NodeGroup": Call(
        "eks",
        "CreateNodegroupRequest",
        {"nodeRoleArn": "CreateNodegroupRequest.nodeRole", "subnetIds": "CreateNodegroupRequest.subnets"},
    ),
    "fsx/dataRepositoryAssociation:DataRepositoryAssociation": Call("fsx", "CreateDataRepositoryAssociationRequest"),
    "fsx/lustreFileSystem:LustreFileSystem": Call(
        "fsx",
        "CreateFileSystemRequest CreateFileSystemLustreConfiguration DeleteFileSystemLustreConfiguration",
    ),
    "iam/instanceProfile:InstanceProfile": Call("iam", "", {"role": "AddRoleToInstanceProfileRequest.RoleName"}),
    "iam/role:Role": Call("iam", "", {"assumeRolePolicy": "CreateRoleRequest.AssumeRolePolicyDocument"}),
    "iam/rolePolicy:RolePolicy": Call(
        "iam", "", {"role": "PutRolePolicyRequest.RoleName", "policy": "PutRolePolicyRequest.PolicyDocument"}
    ),
    "kms/key:Key": Call(
        "kms",
        "CreateKeyRequest EnableKeyRotationRequest",
        {"deletionWindowInDays": "ScheduleKeyDeletionRequest.PendingWindowInDays"},
        frozenset({"enableKeyRotation"}),
    ),
    "s3/bucket:Bucket": Call("s3", "CreateBucketRequest", own=frozenset({"forceDestroy"})),
    "s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": Call("s3", "BucketLifecycleConfiguration", BUCKET),
    "s3/bucketObjectv2:BucketObjectv2": Call("s3", "PutObjectRequest", own=frozenset({"source"})),
    "s3/bucketPolicy:BucketPolicy": Call("s3", "PutBucketPolicyRequest"),
    "s3/bucketPublicAccessBlock:BucketPublicAccessBlock": Call("s3", "PublicAccessBlockConfiguration", BUCKET),
    "s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": Call(
        "s3", "ServerSideEncryptionConfiguration", BUCKET
    ),
    "s3/bucketVersioning:BucketVersioning": Call("s3", "PutBucketVersioningRequest"),
    "sqs/queue:Queue": Call("sqs", "QueueAttributeMap", own=frozenset({"messageRetentionSeconds"})),
    "sqs/queuePolicy:QueuePolicy": Call("sqs", "SetQueueAttributesRequest QueueAttributeMap"),
    "vpc/securityGroupEgressRule:SecurityGroupEgressRule": Call("ec2", "SecurityGroupRuleRequest", RULE),
    "vpc/securityGroupIngressRule:SecurityGroupIngressRule": Call("ec2", "SecurityGroupRuleRequest", RULE),
}


def refusals(graph: Graph) -> Iterator[str]:
    for row in resources(graph):
        kind = row["type"].removeprefix("aws:")
        if row["type"].startswith("aws:"):
            inputs = {name: value for name, value in row["inputs"].items() if name != "tags"}
            yield from (f"{row['name']}.{fault}" for fault in CALLS[kind].faults(inputs))


@pytest.mark.parametrize("stack", shipped())
def test_a_shipped_stack_asks_aws_for_what_its_api_knows(stack: str) -> None:
    assert list(refusals(render(REPOSITORY, stack))) == []


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_cluster_asks_aws_for_what_its_api_knows(cluster: str, graph_of: Callable[[str], Graph]) -> None:
    assert list(refusals(graph_of(cluster))) == []


@pytest.mark.parametrize(
    ("kind", "inputs", "fault"),
    [
        ("ec2/fleet:Fleet", {"type": "once"}, "type: 'once' is none of"),
        ("ec2/vpc:Vpc", {"cidr": "10.0.0.0/16"}, "cidr: no such member of CreateVpcRequest"),
        ("kms/key:Key", {"rotationPeriodInDays": 30}, "rotationPeriodInDays: 30 is outside 90 to 2560"),
        (
            "ec2/launchTemplate:LaunchTemplate",
            {"instanceMarketOptions": {"marketType": "block"}},
            "instanceMarketOptions.marketType: 'block' is none of",
        ),
        (
            "s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration",
            {"rules": [{"id": "forget"}]},
            "rules: LifecycleRule needs Status",
        ),
        ("sqs/queue:Queue", {"kmsKeyId": "x"}, "kmsKeyId: no such member of QueueAttributeMap"),
    ],
)
def test_what_the_api_does_not_know_is_told_with_its_path(kind: str, inputs: dict[str, Any], fault: str) -> None:
    (told,) = CALLS[kind].faults(inputs)

    assert told.startswith(fault)
