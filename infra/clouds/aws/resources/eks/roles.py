"""Roles of a cluster of EKS: each with one inline policy, and nothing that AWS attaches elsewhere.

Source: EKS User Guide, "Amazon EKS cluster IAM role" (its custom policy, without load balancers).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pulumi import Input, Output, ResourceOptions
from pulumi_aws import iam

from infra.clouds.aws.resources.iam.documents import policy
from infra.clouds.dependencies import once

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


def assumed_by_pods(owner: Input[str], cluster: str, namespace: str, service_account: str) -> Output[str]:
    """The trust policy of a role for pods of one service account: of this cluster, and of this account alone, whose
    number is the owner's. Else any association of Pod Identity might take it on.

    Source: EKS User Guide, "Create IAM role with trust policy required by EKS Pod Identity" (EKS tells who asks by
    request tags) and "Cross-service confused deputy prevention".
    """
    tags = {
        "eks-cluster-name": cluster,
        "kubernetes-namespace": namespace,
        "kubernetes-service-account": service_account,
    }
    trust = {
        "Effect": "Allow",
        "Principal": {"Service": "pods.eks.amazonaws.com"},
        "Action": ["sts:AssumeRole", "sts:TagSession"],
        "Condition": {
            "StringEquals": {
                "aws:SourceAccount": owner,
                **{f"aws:RequestTag/{key}": value for key, value in tags.items()},
            }
        },
    }
    return policy(trust)


def role(name: str, trust: Input[str], statements: Iterable[Mapping[str, Any]], opts: ResourceOptions) -> Output[str]:
    """The ARN of a role, known once it may do its work. trust: the policy that says who takes it on."""
    created = iam.Role(f"{name}-role", assume_role_policy=trust, opts=opts)
    permissions = iam.RolePolicy(f"{name}-permissions", role=created.name, policy=policy(*statements), opts=opts)
    return once(created.arn, permissions.id)
