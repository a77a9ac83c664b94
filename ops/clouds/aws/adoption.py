"""Which resources of a rendered plan exist in the account although the engine's state lacks them, and by which ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from ops.clouds.aws.account import GLOBAL_REGION, Account
from ops.clouds.aws.resource_ids import NAMED, TAGGED
from ops.clouds.aws.tagged_resources import Thing
from ops.engine import state_repair
from ops.engine.state_repair import Found, Row

GONE = ("NoSuchEntity", "ResourceNotFoundException")


@dataclass(frozen=True)
class Adoption:
    """What is known when a row's turn comes. ids: by URN, of the state and of what was found so far."""

    account: Account
    things: Sequence[Thing]
    ids: dict[str, str]

    def found(self, rows: Sequence[Row]) -> dict[str, Found]:
        """What exists, by URN. rows: in the order of their dependencies."""
        answer: dict[str, Found] = {}
        for row in rows:
            if row["custom"] and row["urn"] not in self.ids and (one := self._find(row)):
                answer[row["urn"]] = one
                self.ids[row["urn"]] = one.id
        return answer

    def _find(self, row: Row) -> Found | None:
        if kind := TAGGED.get(row["type"]):
            taken = set(self.ids.values())
            same = (each for each in self.things if (each.kind, each.name) == (kind, row["name"]))
            one = next((each for each in same if each.id not in taken), None)
            return self.refreshed(row, one.id, self._name(one) if row["type"] in NAMED else "") if one else None
        try:
            return BELONGING[row["type"]](self, row) if row["type"] in BELONGING else None
        except ClientError as error:
            if error.response["Error"]["Code"] in GONE:  # what it belongs to is in the state only
                return None
            raise

    def owner(self, row: Row, key: str) -> str | None:
        """The id of the resource that an input refers to; None while it is not there."""
        return state_repair.owner(row, key, self.ids)

    def refreshed(self, row: Row, id_: str, made_up: str, **more: str) -> Found:
        """Read by its id alone; a made-up name is marked as one."""
        return state_repair.refreshed(row, id_, NAMED.get(row["type"], ""), made_up, **more)

    def _name(self, thing: Thing) -> str:
        """Its id, or the end of it; that of two kinds the cloud has to be asked for."""
        ec2 = self.account.client("ec2")
        match thing.kind:
            case "ec2/security-group":
                return ec2.describe_security_groups(GroupIds=[thing.id])["SecurityGroups"][0]["GroupName"]
            case "ec2/launch-template":
                told = ec2.describe_launch_templates(LaunchTemplateIds=[thing.id])["LaunchTemplates"]
                return told[0]["LaunchTemplateName"]
        return re.split("[:/]", thing.id)[-1]

    def table(self, id_: str | None) -> Mapping[str, Any]:
        """A route table, with its routes and associations; an empty one where there is none."""
        asked = [{"Name": "route-table-id", "Values": [id_]}]
        told = self.account.client("ec2").describe_route_tables(Filters=asked)["RouteTables"] if id_ else ()
        return next(iter(told), {"Routes": (), "Associations": ()})


def _setting_of(key: str) -> Callable[[Adoption, Row], Found | None]:
    """A setting has the id of what it is a setting of."""

    def find(known: Adoption, row: Row) -> Found | None:
        owner = known.owner(row, key)
        return Found(owner) if owner else None

    return find


def _route(known: Adoption, row: Row) -> Found | None:
    table, to = known.owner(row, "routeTableId"), row["inputs"]["destinationCidrBlock"]
    there = any(route.get("DestinationCidrBlock") == to for route in known.table(table)["Routes"])
    return Found(f"{table}_{to}") if there else None


def _association(known: Adoption, row: Row) -> Found | None:
    table, subnet = known.owner(row, "routeTableId"), known.owner(row, "subnetId")
    there = any(subnet and each.get("SubnetId") == subnet for each in known.table(table)["Associations"])
    return Found(f"{subnet}/{table}") if there else None


def _object(known: Adoption, row: Row) -> Found | None:
    bucket = known.owner(row, "bucket")
    return Found(f"{bucket}/{row['inputs']['key']}") if bucket else None


def _target(known: Adoption, row: Row) -> Found | None:
    rule = known.owner(row, "rule")
    targets = known.account.client("events").list_targets_by_rule(Rule=rule)["Targets"] if rule else ()
    ids = [target["Id"] for target in targets]
    return next((known.refreshed(row, f"{rule}-{id_}", id_, rule=str(rule)) for id_ in ids), None)


def _role_policy(known: Adoption, row: Row) -> Found | None:
    """A role of ours has one inline policy."""
    role = known.owner(row, "role")
    iam = known.account.client("iam", GLOBAL_REGION)
    policies = iam.list_role_policies(RoleName=role)["PolicyNames"] if role else ()
    return next((known.refreshed(row, f"{role}:{name}", name) for name in policies), None)


def _attachment(known: Adoption, row: Row) -> Found | None:
    role = known.owner(row, "role")
    return Found(f"{role}/{row['inputs']['policyArn']}") if role else None


def _access(*keys: str, joint: str) -> Callable[[Adoption, Row], Found | None]:
    """Access to a cluster of EKS has the id of the cluster and of what the stack file names, joined."""

    def find(known: Adoption, row: Row) -> Found | None:
        cluster = next((known.ids.get(urn) for urn in row["dependencies"] if "$aws:eks/cluster:Cluster::" in urn), None)
        return Found(joint.join([cluster, *(row["inputs"][key] for key in keys)])) if cluster else None

    return find


def _scaling_policy(known: Adoption, row: Row) -> Found | None:
    group = known.owner(row, "autoscalingGroupName")
    asked = {"AutoScalingGroupName": group}
    policies = known.account.listed("autoscaling", "describe_policies", "ScalingPolicies", **asked) if group else ()
    names = [each["PolicyName"] for each in policies]
    return next((known.refreshed(row, name, name, autoscalingGroupName=str(group)) for name in names), None)


BELONGING: dict[str, Callable[[Adoption, Row], Found | None]] = {
    "aws:autoscaling/policy:Policy": _scaling_policy,
    "aws:cloudwatch/eventTarget:EventTarget": _target,
    "aws:ec2/route:Route": _route,
    "aws:ec2/routeTableAssociation:RouteTableAssociation": _association,
    "aws:eks/accessEntry:AccessEntry": _access("principalArn", joint=":"),
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": _access("principalArn", "policyArn", joint="#"),
    "aws:iam/rolePolicy:RolePolicy": _role_policy,
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": _attachment,
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": _setting_of("bucket"),
    "aws:s3/bucketObjectv2:BucketObjectv2": _object,
    "aws:s3/bucketPolicy:BucketPolicy": _setting_of("bucket"),
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": _setting_of("bucket"),
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": _setting_of("bucket"),
    "aws:s3/bucketVersioning:BucketVersioning": _setting_of("bucket"),
    "aws:sqs/queuePolicy:QueuePolicy": _setting_of("queueUrl"),
}
