"""Who may do what at Alibaba Cloud: a RAM role with one policy, made of the plan's statements and nothing else.

Sources: RAM User Guide, "Policy elements"; ACK User Guide, "Use RRSA to authorize different pods to access different
cloud services" (the trust policy of a role for pods).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_alicloud import ram

from infra.clouds.order import once
from infra.plan.statement import Resource, Statement

VERSION = "1"  # of RAM's policy language


@dataclass(frozen=True, kw_only=True)
class IdentityArgs:
    """What the role needs. role: its name, and that of its policy. trust: who takes it on. buckets: their names by the
    plan's."""

    plan: Sequence[Statement]
    role: str
    trust: Input[str]
    buckets: Mapping[str, Input[str]]
    key_arn: Input[str]


class Identity(ComponentResource):
    """role_name, role_arn: of the role, known once it may do its work."""

    role_name: Output[str]
    role_arn: Output[str]

    def __init__(self, name: str, args: IdentityArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:alicloud:Identity", name, {}, opts)
        mine = ResourceOptions(parent=self)
        role = ram.Role(
            f"{name}-role",
            role_name=args.role,
            assume_role_policy_document=args.trust,
            opts=mine,
        )
        policy = ram.Policy(
            f"{name}-permissions",
            policy_name=args.role,
            policy_document=Output.json_dumps(
                {"Version": VERSION, "Statement": [_statement(each, args) for each in args.plan]}
            ),
            rotate_strategy="DeleteOldestNonDefaultVersionWhenLimitExceeded",
            opts=mine,
        )
        attached = ram.RolePolicyAttachment(
            f"{name}-permitted",
            role_name=role.role_name,
            policy_name=policy.policy_name,
            policy_type="Custom",
            opts=mine,
        )
        self.role_name = once(role.role_name, attached.id)
        self.role_arn = once(role.arn, attached.id)
        self.register_outputs({"role_name": self.role_name})


def assumed_by(service: str) -> str:
    """The trust policy of a role that only this service may take on."""
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": [service]}}
    return json.dumps({"Version": VERSION, "Statement": [trust]})


def assumed_by_pods(provider: Input[str], issuer: Input[str], audience: str, subject: str) -> Output[str]:
    """The trust policy of a role for pods of one service account, of the one cluster whose tokens this issuer signs.
    provider: the ARN of the OIDC provider in RAM."""
    said = {"oidc:iss": issuer, "oidc:aud": audience, "oidc:sub": subject}
    trust = {
        "Effect": "Allow",
        "Action": "sts:AssumeRole",
        "Principal": {"Federated": [provider]},
        "Condition": {"StringEquals": said},
    }
    return Output.json_dumps({"Version": VERSION, "Statement": [trust]})


def _statement(plan: Statement, args: IdentityArgs) -> dict[str, Any]:
    """RAM knows no `Sid`; the purpose stands in the plan."""
    tests = {"StringEquals": dict(plan.equals), "StringLike": dict(plan.like)}
    condition = {operator: lines for operator, lines in tests.items() if lines}
    return {
        "Effect": "Allow",
        "Action": list(plan.actions),
        "Resource": [_arn(resource, args) for resource in plan.resources],
        **({"Condition": condition} if condition else {}),
    }


def _arn(resource: Resource, args: IdentityArgs) -> Input[str]:
    match resource.kind:
        case "bucket":
            return Output.concat("acs:oss:*:*:", args.buckets[resource.name])
        case "objects":
            return Output.concat("acs:oss:*:*:", args.buckets[resource.name], f"/{resource.prefix}*")
        case "key":
            return args.key_arn
        case "interfaces" | "anything":
            return "*"
