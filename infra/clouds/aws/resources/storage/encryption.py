"""The stack's own key: disks, buckets, file systems, queue and logs are encrypted with it.

Sources: KMS Developer Guide, "Default key policy" (the account's administrators keep the key, or nobody could);
CloudWatch Logs User Guide, "Encrypt log data using KMS"; EC2 Auto Scaling User Guide, "Required KMS key policy for use
with encrypted volumes"; EC2 User Guide, "Prerequisites for EC2 Fleet" (fleets start nodes by their own roles); FSx for
Lustre User Guide, "Working with server-side encrypted Amazon S3 buckets" (each file system has a role of its own).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_aws import kms

from infra.clouds.aws.plan.model import KeyPlan
from infra.clouds.aws.resources.iam.documents import policy

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
REPOSITORY_ROLES = "s3.data-source.lustre.fsx.amazonaws.com/AWSServiceRoleForFSxS3Access_*"
ANYBODY = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Resource": "*"}  # whom its condition lets through


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
    if args.plan.repository_grant:
        yield _repositories(args)


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
        "ArnEquals": {"aws:PrincipalArn": [_service_role(args, role) for role in roles]},
    }
    yield {"Sid": "Launchers", **ANYBODY, "Action": list(USE), "Condition": theirs}
    yield {
        "Sid": "LaunchersGrant",
        **ANYBODY,
        "Action": "kms:CreateGrant",
        "Condition": {**theirs, "Bool": {"kms:GrantIsForAWSResource": "true"}},
    }


def _repositories(args: EncryptionArgs) -> dict[str, Any]:
    """The roles by which file systems reach the buckets that they show: through S3 alone."""
    through_s3 = {"kms:CallerAccount": args.owner, "kms:ViaService": f"s3.{args.region}.amazonaws.com"}
    theirs = {"ArnLike": {"aws:PrincipalArn": _service_role(args, REPOSITORY_ROLES)}}
    return {"Sid": "Repositories", **ANYBODY, "Action": list(USE), "Condition": {"StringEquals": through_s3, **theirs}}


def _service_role(args: EncryptionArgs, name: str) -> Output[str]:
    return Output.concat("arn:aws:iam::", args.owner, ":role/aws-service-role/", name)
