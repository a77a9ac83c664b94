"""What a node may do at AWS: roles with one inline policy each, made of the plan's statements and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_aws import iam

from infra.clouds.aws.resources.iam.documents import assumed_by, assumed_by_role, policy
from infra.clouds.dependencies import once
from infra.plan.iam import Resource, Statement


@dataclass(frozen=True, kw_only=True)
class IdentityArgs:
    """What a role needs. buckets: their ARNs by the plan's names. vpc_id: known once its way to S3 is there.

    storage_role: its ARN, where a statement is about it.
    """

    plan: Sequence[Statement]
    buckets: Mapping[str, Input[str]]
    key_arn: Input[str]
    vpc_id: Input[str]
    storage_role: Input[str] = ""


class Identity(ComponentResource):
    """The nodes' role, and the one that they take on for sessions of jobs and tenants.

    profile_arn: of the instance profile that carries the first, known once the role may do its work. storage_role: the
    ARN of the second, empty where the plan has no statement for it.
    """

    profile_arn: Output[str]
    storage_role: Input[str]

    def __init__(
        self, name: str, args: IdentityArgs, storage: Sequence[Statement], opts: ResourceOptions | None = None
    ) -> None:
        super().__init__("gpufleet:aws:Identity", name, {}, opts)
        child = ResourceOptions(parent=self)
        role = iam.Role(f"{name}-role", assume_role_policy=assumed_by("ec2.amazonaws.com"), opts=child)
        self.storage_role = self._storage_role(role, replace(args, plan=storage), child) if storage else ""
        permissions = iam.RolePolicy(
            f"{name}-permissions",
            role=role.name,
            policy=policy(*statements(replace(args, storage_role=self.storage_role))),
            opts=child,
        )
        profile = iam.InstanceProfile(f"{name}-profile", role=role.name, opts=child)
        self.profile_arn = once(profile.arn, permissions.id)
        self.register_outputs({"profile_arn": self.profile_arn})

    @staticmethod
    def _storage_role(nodes: iam.Role, args: IdentityArgs, opts: ResourceOptions) -> Output[str]:
        role = iam.Role("storage-role", assume_role_policy=assumed_by_role(nodes.arn), opts=opts)
        permissions = iam.RolePolicy("storage-permissions", role=role.name, policy=policy(*statements(args)), opts=opts)
        return once(role.arn, permissions.id)


def statements(args: IdentityArgs) -> Iterator[dict[str, Any]]:
    """The plan's statements, about things by their ARNs."""
    return (_statement(statement, args) for statement in args.plan)


def _statement(plan: Statement, args: IdentityArgs) -> dict[str, Any]:
    equals = {**plan.equals, **({"aws:SourceVpc": args.vpc_id} if plan.within_vpc else {})}
    conditions = {"StringEquals": equals, "StringLike": dict(plan.like)}
    condition = {"Condition": held} if (held := {key: value for key, value in conditions.items() if value}) else {}
    return {
        "Sid": plan.sid,
        "Effect": "Allow",
        "Action": list(plan.actions),
        "Resource": [_arn(resource, args) for resource in plan.resources],
        **condition,
    }


def _arn(resource: Resource, args: IdentityArgs) -> Input[str]:
    match resource.kind:
        case "bucket":
            return args.buckets[resource.name]
        case "objects":
            return Output.concat(args.buckets[resource.name], f"/{resource.prefix}*")
        case "key":
            return args.key_arn
        case "interfaces":
            return "arn:aws:ec2:*:*:network-interface/*"
        case "storage-role":
            return args.storage_role
        case "anything":
            return "*"
