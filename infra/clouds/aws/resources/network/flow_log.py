"""The flow log of the VPC, in CloudWatch Logs.

Source of the role's actions and of who takes it on: Amazon VPC User Guide, "IAM role for publishing flow logs to
CloudWatch Logs"; the log group exists already, so the right to make one is left out.
"""

from __future__ import annotations

from dataclasses import dataclass

from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_aws import cloudwatch, ec2, iam

from infra.clouds.aws.plan.model import FlowLogPlan
from infra.clouds.aws.resources.iam.documents import assumed_for, policy


@dataclass(frozen=True, kw_only=True)
class FlowLogArgs:
    """What the flow log needs. owner: the account's number. key_arn: the stack's key, which CloudWatch Logs may use."""

    plan: FlowLogPlan
    region: str
    owner: Input[str]
    vpc_id: Input[str]
    key_arn: Input[str]


class FlowLog(ComponentResource):
    """The VPC's flow log, its log group, and the role that writes it."""

    def __init__(self, name: str, args: FlowLogArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:aws:FlowLog", name, {}, opts)
        child = ResourceOptions(parent=self)
        group = cloudwatch.LogGroup(
            f"{name}-group", retention_in_days=args.plan.retention_days, kms_key_id=args.key_arn, opts=child
        )
        logs = Output.concat("arn:aws:ec2:", args.region, ":", args.owner, ":vpc-flow-log/*")
        trust = assumed_for(args.owner, "vpc-flow-logs.amazonaws.com", logs)
        role = iam.Role(f"{name}-role", assume_role_policy=trust, opts=child)
        streams = Output.concat(group.arn, ":*")
        iam.RolePolicy(
            f"{name}-permissions",
            role=role.name,
            policy=policy(
                {
                    "Sid": "Write",
                    "Effect": "Allow",
                    "Action": ["logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogStreams"],
                    "Resource": [group.arn, streams],
                },
                {"Sid": "Find", "Effect": "Allow", "Action": "logs:DescribeLogGroups", "Resource": "*"},
            ),
            opts=child,
        )
        ec2.FlowLog(
            f"{name}-vpc",
            vpc_id=args.vpc_id,
            traffic_type=args.plan.traffic,
            max_aggregation_interval=args.plan.aggregation_seconds,
            log_destination_type="cloud-watch-logs",
            log_destination=group.arn,
            iam_role_arn=role.arn,
            opts=child,
        )
        self.register_outputs({})
