"""Roles of a cluster of EKS: each with one inline policy, and nothing that AWS attaches elsewhere.

Source: EKS User Guide, "Amazon EKS cluster IAM role" (its custom policy, without load balancers).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pulumi import Input, Output, ResourceOptions
from pulumi_aws import iam

from infra.clouds.aws.documents import policy
from infra.clouds.order import once

CONTROL_PLANE = (
    {
        "Sid": "TagNodes",
        "Effect": "Allow",
        "Action": "ec2:CreateTags",
        "Resource": "arn:aws:ec2:*:*:instance/*",
        "Condition": {"ForAnyValue:StringLike": {"aws:TagKeys": "kubernetes.io/cluster/*"}},
    },
    {
        "Sid": "SeeNodes",
        "Effect": "Allow",
        "Action": [
            "ec2:DescribeInstances",
            "ec2:DescribeNetworkInterfaces",
            "ec2:DescribeVpcs",
            "ec2:DescribeDhcpOptions",
            "ec2:DescribeAvailabilityZones",
            "ec2:DescribeInstanceTopology",
            "kms:DescribeKey",
        ],
        "Resource": "*",
    },
)


def role(name: str, trust: Input[str], statements: Iterable[Mapping[str, Any]], opts: ResourceOptions) -> Output[str]:
    """The ARN of a role, known once it may do its work. trust: the policy that says who takes it on."""
    made = iam.Role(f"{name}-role", assume_role_policy=trust, opts=opts)
    permissions = iam.RolePolicy(f"{name}-permissions", role=made.name, policy=policy(*statements), opts=opts)
    return once(made.arn, permissions.id)
