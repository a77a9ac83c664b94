"""The stack's own key: disks, buckets, file systems, queue and logs are encrypted with it.

Sources: KMS Developer Guide, "Default key policy" (the account's administrators keep the key, or nobody could);
CloudWatch Logs User Guide, "Encrypt log data using KMS"; EC2 Auto Scaling User Guide, "Required KMS key policy for use
with encrypted volumes"; EC2 User Guide, "Prerequisites for EC2 Fleet" (fleets start nodes by their own roles).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_aws import kms

from infra.clouds.aws.documents import policy
from infra.plan.aws import KeyPlan

USE = (
    "kms:Encrypt",
    "kms:Decrypt",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
    "kms:GenerateDataKey",
    "kms:GenerateDataKeyWithoutPlaintext",
    "kms:DescribeKey",
)
FLEET_ROLES = (
    "ec2fleet.amazonaws.com/AWSServiceRoleForEC2Fleet",
    "spot.amazonaws.com/AWSServiceRoleForEC2Spot",
)
SCALING_ROLE = "autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"


@dataclass(frozen=True, kw_only=True)
class EncryptionArgs:
    """What the key needs. owner: the account's number."""

    plan: KeyPlan
    region: str
    owner: Input[str]


class Encryption(ComponentResource):
    """The key, rotated by KMS."""

    key_arn: Output[str]

    def __init__(self, name: str, args: EncryptionArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:aws:Encryption", name, {}, opts)
        key = kms.Key(
            f"{name}-key",
            description="gpufleet: everything this stack keeps",
            enable_key_rotation=True,
            rotation_period_in_days=args.plan.rotation_days,
            deletion_window_in_days=args.plan.deletion_days,
            policy=policy(*_statements(args)),
            opts=ResourceOptions(parent=self),
        )
        self.key_arn = key.arn
        self.register_outputs({"key_arn": self.key_arn})


def _statements(args: EncryptionArgs) -> Iterator[dict[str, Any]]:
    yield {
        "Sid": "Account",
        "Effect": "Allow",
        "Principal": {"AWS": Output.concat("arn:aws:iam::", args.owner, ":root")},
        "Action": "kms:*",
        "Resource": "*",
    }
    for service in args.plan.services:
        yield {
            "Sid": "Service" + "".join(part.capitalize() for part in service.replace("-", ".").split(".")),
            "Effect": "Allow",
            "Principal": {"Service": service},
            "Action": list(USE),
            "Resource": "*",
            "Condition": _only_ours(service, args),
        }
    yield from _launchers(args)


def _only_ours(service: str, args: EncryptionArgs) -> dict[str, Any]:
    """CloudWatch Logs names the log group, the other services the account that they work for."""
    if service.startswith("logs."):
        groups = Output.concat("arn:aws:logs:", args.region, ":", args.owner, ":log-group:*")
        return {"ArnLike": {"kms:EncryptionContext:aws:logs:arn": groups}}
    return {"StringEquals": {"aws:SourceAccount": args.owner}}


def _launchers(args: EncryptionArgs) -> Iterator[dict[str, Any]]:
    """The roles by which AWS starts nodes. By condition: as principals, those that do not exist yet are refused."""
    roles = [*FLEET_ROLES, *((SCALING_ROLE,) if args.plan.scaling_grant else ())]
    theirs = {
        "StringEquals": {"kms:CallerAccount": args.owner},
        "ArnEquals": {
            "aws:PrincipalArn": [
                Output.concat("arn:aws:iam::", args.owner, ":role/aws-service-role/", role) for role in roles
            ]
        },
    }
    everyone = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Resource": "*"}
    yield {"Sid": "Launchers", **everyone, "Action": list(USE), "Condition": theirs}
    yield {
        "Sid": "LaunchersGrant",
        **everyone,
        "Action": "kms:CreateGrant",
        "Condition": {**theirs, "Bool": {"kms:GrantIsForAWSResource": "true"}},
    }
