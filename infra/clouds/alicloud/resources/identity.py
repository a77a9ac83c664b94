"""What a node may do at Alibaba Cloud: a RAM role with one policy, made of the plan's statements and nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_alicloud import ram

from infra.clouds.alicloud.plan.iam import nodes_role
from infra.clouds.dependencies import once
from infra.plan.iam import Resource, Statement

VERSION = "1"  # of RAM's policy language


@dataclass(frozen=True, kw_only=True)
class IdentityArgs:
    """What the role needs. buckets: their names by the plan's."""

    plan: Sequence[Statement]
    stack: str
    buckets: Mapping[str, Input[str]]
    key_arn: Input[str]


class Identity(ComponentResource):
    """role_name: of the nodes' role, known once it may do its work."""

    role_name: Output[str]

    def __init__(self, name: str, args: IdentityArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:alicloud:Identity", name, {}, opts)
        child = ResourceOptions(parent=self)
        role = ram.Role(
            f"{name}-role",
            role_name=nodes_role(args.stack),
            assume_role_policy_document=assumed_by("ecs.aliyuncs.com"),
            opts=child,
        )
        policy = ram.Policy(
            f"{name}-permissions",
            policy_name=nodes_role(args.stack),
            policy_document=Output.json_dumps(
                {"Version": VERSION, "Statement": [_statement(each, args) for each in args.plan]}
            ),
            rotate_strategy="DeleteOldestNonDefaultVersionWhenLimitExceeded",
            opts=child,
        )
        attached = ram.RolePolicyAttachment(
            f"{name}-permitted",
            role_name=role.role_name,
            policy_name=policy.policy_name,
            policy_type="Custom",
            opts=child,
        )
        self.role_name = once(role.role_name, attached.id)
        self.register_outputs({"role_name": self.role_name})


def assumed_by(service: str) -> str:
    """The trust policy of a role that only this service may take on."""
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": [service]}}
    return json.dumps({"Version": VERSION, "Statement": [trust]})


def _statement(plan: Statement, args: IdentityArgs) -> dict[str, Any]:
    """RAM knows no `Sid`; the purpose stands in the plan."""
    return {
        "Effect": "Allow",
        "Action": list(plan.actions),
        "Resource": [_arn(resource, args) for resource in plan.resources],
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
