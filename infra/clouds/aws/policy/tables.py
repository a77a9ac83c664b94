"""What the rules for every cloud are about at AWS."""

from __future__ import annotations

from infra.clouds.aws.policy.types import (
    BLOCK_PURCHASE,
    BUCKET,
    EKS_CLUSTER,
    EKS_NODES,
    FLEET,
    INSTANCE,
    KEY,
    LAUNCH_CONFIGURATION,
    LAUNCH_TEMPLATE,
    LUSTRE,
    PROVIDER,
    SPOT_INSTANCE,
    VPC,
)
from infra.policy.tables import ArnForm, Tables

TABLES = Tables(
    providers=(PROVIDER,),
    tagged=(
        BLOCK_PURCHASE,
        BUCKET,
        EKS_CLUSTER,
        EKS_NODES,
        FLEET,
        INSTANCE,
        KEY,
        LAUNCH_TEMPLATE,
        LUSTRE,
        VPC,
        "aws:cloudwatch/logGroup:LogGroup",
        "aws:ebs/volume:Volume",
        "aws:ec2/eip:Eip",
        "aws:ec2/natGateway:NatGateway",
        "aws:ec2/securityGroup:SecurityGroup",
        "aws:ec2/subnet:Subnet",
        "aws:ec2/vpcEndpoint:VpcEndpoint",
        "aws:iam/role:Role",
        "aws:sqs/queue:Queue",
    ),
    with_user_data=(LAUNCH_TEMPLATE, LAUNCH_CONFIGURATION, INSTANCE, SPOT_INSTANCE),
    secrets={"an access key of AWS": r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"},
    arns=(ArnForm(prefix="arn", parts=6, flat=("s3", "sqs", "sns")),),
)
