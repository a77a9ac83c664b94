"""Whatever AWS bills of a stack is an item of its price: with a sourced figure, or named as missing one."""

from __future__ import annotations

import pytest
from rendered import REPOSITORY, shipped

from infra.graph import plan_document

# Resource type → a word of the item that stands for it.
BILLED = {
    "aws:cloudwatch/logGroup:LogGroup": "log",
    "aws:ec2/eip:Eip": "public addresses",
    "aws:ec2/natGateway:NatGateway": "NAT gateways",
    "aws:eks/cluster:Cluster": "control plane",
    "aws:fsx/lustreFileSystem:LustreFileSystem": "Lustre",
    "aws:kms/key:Key": "keys",
    "aws:s3/bucket:Bucket": "bucket",
    "aws:sqs/queue:Queue": "queue",
}
NODES = {
    "aws:autoscaling/group:Group",
    "aws:ec2/fleet:Fleet",
    "aws:ec2/instance:Instance",
    "aws:eks/nodeGroup:NodeGroup",
}
# Types of the stacks that cost nothing, or nothing beside what is listed: the nodes of a template, what a log holds.
FREE = {
    "aws:autoscaling/policy:Policy",
    "aws:budgets/budget:Budget",
    "aws:cloudwatch/eventRule:EventRule",
    "aws:cloudwatch/eventTarget:EventTarget",
    "aws:eks/accessEntry:AccessEntry",
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation",
    "aws:eks/addon:Addon",
    "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation",
    "aws:sqs/queuePolicy:QueuePolicy",
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule",
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
    "pulumi:providers:aws",
    *(f"aws:ec2/{name[0].lower()}{name[1:]}:{name}" for name in (
        "DefaultSecurityGroup", "FlowLog", "InternetGateway", "KeyPair", "LaunchTemplate", "PlacementGroup", "Route",
        "RouteTable", "RouteTableAssociation", "SecurityGroup", "Subnet", "Vpc", "VpcEndpoint",
    )),
    *(f"aws:iam/{name[0].lower()}{name[1:]}:{name}" for name in ("InstanceProfile", "Role", "RolePolicy")),
    *(f"aws:s3/{name[0].lower()}{name[1:]}:{name}" for name in (
        "BucketLifecycleConfiguration", "BucketObjectv2", "BucketPolicy", "BucketPublicAccessBlock",
        "BucketServerSideEncryptionConfiguration", "BucketVersioning",
    )),
}  # fmt: skip


@pytest.mark.parametrize("stack", shipped())
def test_everything_that_is_billed_is_an_item_of_the_price(stack: str) -> None:
    document = plan_document(REPOSITORY, stack)
    items = {item["name"] for item in document["cost"]["items"]}
    types = {row["type"] for row in document["resources"] if row["custom"]}

    assert types <= BILLED.keys() | NODES | FREE
    assert [kind for kind, word in BILLED.items() if kind in types and not any(word in name for name in items)] == []


@pytest.mark.parametrize("stack", shipped())
def test_what_has_no_sourced_price_is_named_as_missing(stack: str) -> None:
    cost = plan_document(REPOSITORY, stack)["cost"]

    assert cost["missing"] == [item["name"] for item in cost["items"] if item["hourly"] is None]
    assert all(item["source"] for item in cost["items"])
