"""Who may do what at Alibaba Cloud: a RAM role with one policy, made of the plan's statements and nothing else.

Sources: RAM User Guide, "Policy elements"; ACK User Guide, "Use RRSA to authorize different pods to access different
cloud services" (the trust policy of a role for pods); RAM User Guide, "Edit the trust policy of a RAM role" (one role
as the principal of another).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_alicloud import ram

from infra.clouds.dependencies import once
from infra.plan.iam import Resource, Statement

VERSION = "1"  # of RAM's policy language


@dataclass(frozen=True, kw_only=True)
class IdentityArgs:
    """What the role needs. role: its name, and that of its policy. trust: who takes it on. buckets: their names by the
    plan's. storage_role: its ARN, where a statement is about it."""

    plan: Sequence[Statement]
    role: str
    trust: Input[str]
    buckets: Mapping[str, Input[str]]
    key_arn: Input[str]
    storage_role: Input[str] = ""


@dataclass(frozen=True, kw_only=True)
class StorageArgs:
    """The storage role: its statements and its name."""

    plan: Sequence[Statement]
    role: str


class Identity(ComponentResource):
    """A role with its policy, and the one that it takes on for the storage sessions of others.

    role_name, role_arn: of the first, known once it may do its work. storage_role: the ARN of the second, empty where
    the plan has no statement for it.
    """

    role_name: Output[str]
    role_arn: Output[str]
    storage_role: Input[str]

    def __init__(
        self, name: str, args: IdentityArgs, storage: StorageArgs | None = None, opts: ResourceOptions | None = None
    ) -> None:
        super().__init__("gpufleet:alicloud:Identity", name, {}, opts)
        role = self._role(name, args)
        self.storage_role = "" if storage is None else self._storage_role(role, args, storage)
        permitted = self._permitted(name, role, replace(args, storage_role=self.storage_role))
        self.role_name = once(role.role_name, permitted)
        self.role_arn = once(role.arn, permitted)
        self.register_outputs({"role_name": self.role_name})

    def _storage_role(self, taken_on_by: ram.Role, args: IdentityArgs, storage: StorageArgs) -> Output[str]:
        of_storage = replace(args, plan=storage.plan, role=storage.role, trust=assumed_by_role(taken_on_by.arn))
        role = self._role("storage", of_storage)
        return once(role.arn, self._permitted("storage", role, of_storage))

    def _role(self, name: str, args: IdentityArgs) -> ram.Role:
        return ram.Role(
            f"{name}-role",
            role_name=args.role,
            assume_role_policy_document=args.trust,
            opts=ResourceOptions(parent=self),
        )

    def _permitted(self, name: str, role: ram.Role, args: IdentityArgs) -> Output[str]:
        """Known once the role may do what the plan says."""
        child = ResourceOptions(parent=self)
        policy = ram.Policy(
            f"{name}-permissions",
            policy_name=args.role,
            policy_document=Output.json_dumps(
                {"Version": VERSION, "Statement": [_statement(each, args) for each in args.plan]}
            ),
            rotate_strategy="DeleteOldestNonDefaultVersionWhenLimitExceeded",
            opts=child,
        )
        return ram.RolePolicyAttachment(
            f"{name}-permitted",
            role_name=role.role_name,
            policy_name=policy.policy_name,
            policy_type="Custom",
            opts=child,
        ).id


def assumed_by_role(role: Input[str]) -> Output[str]:
    """The trust policy of a role that one other role, by its ARN, may take on."""
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"RAM": [role]}}
    return Output.json_dumps({"Version": VERSION, "Statement": [trust]})


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
        case "storage-role":
            return args.storage_role
        case "interfaces" | "anything":
            return "*"
