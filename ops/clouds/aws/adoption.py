"""How each row of a plan is matched with what exists at AWS: by its tags, or by what it belongs to."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from botocore.exceptions import ClientError

from ops.clouds.adoption import Adoption
from ops.clouds.aws.account import GLOBAL_REGION, Account
from ops.clouds.aws.resource_ids import NAMED, TAGGED
from ops.clouds.aws.tagged_resources import TaggedResource
from ops.engine import state_repair
from ops.engine.state_repair import ExistingResource, Row

GONE = ("NoSuchEntity", "ResourceNotExistingResourceException")


@dataclass(frozen=True)
class AwsAdoption(Adoption):
    """Of resources in an account at AWS."""

    account: Account
    resources: Sequence[TaggedResource]
    tagged: ClassVar[Mapping[str, str]] = TAGGED

    def imported(self, row: Row, resource: TaggedResource) -> ExistingResource:
        return self.refreshed(row, resource.id, self._name(resource) if row["type"] in NAMED else "")

    def untagged(self, row: Row) -> ExistingResource | None:
        try:
            return UNTAGGED[row["type"]](self, row) if row["type"] in UNTAGGED else None
        except ClientError as error:
            if error.response["Error"]["Code"] in GONE:  # what it belongs to is in the state only
                return None
            raise

    def owner(self, row: Row, key: str) -> str | None:
        """The id of the resource that an input refers to; None while it is not there."""
        return state_repair.owner(row, key, self.ids)

    def refreshed(self, row: Row, id_: str, generated_name: str, **more: str) -> ExistingResource:
        """To be read by its id alone; a name that Pulumi generated is marked as one."""
        return state_repair.refreshed(row, id_, NAMED.get(row["type"], ""), generated_name, **more)

    def _name(self, resource: TaggedResource) -> str:
        """Its id, or the end of it; that of two kinds only the API knows."""
        ec2 = self.account.client("ec2")
        match resource.kind:
            case "ec2/security-group":
                return ec2.describe_security_groups(GroupIds=[resource.id])["SecurityGroups"][0]["GroupName"]
            case "ec2/launch-template":
                response = ec2.describe_launch_templates(LaunchTemplateIds=[resource.id])
                return response["LaunchTemplates"][0]["LaunchTemplateName"]
        return re.split("[:/]", resource.id)[-1]

    def table(self, id_: str | None) -> Mapping[str, Any]:
        """A route table, with its routes and associations; an empty one where there is none."""
        filters = [{"Name": "route-table-id", "Values": [id_]}]
        tables = self.account.client("ec2").describe_route_tables(Filters=filters)["RouteTables"] if id_ else ()
        return next(iter(tables), {"Routes": (), "Associations": ()})


def _setting_of(key: str) -> Callable[[AwsAdoption, Row], ExistingResource | None]:
    """A setting has the id of what it configures."""

    def find(known: AwsAdoption, row: Row) -> ExistingResource | None:
        owner = known.owner(row, key)
        return ExistingResource(owner) if owner else None

    return find


def _route(known: AwsAdoption, row: Row) -> ExistingResource | None:
    table, to = known.owner(row, "routeTableId"), row["inputs"]["destinationCidrBlock"]
    there = any(route.get("DestinationCidrBlock") == to for route in known.table(table)["Routes"])
    return ExistingResource(f"{table}_{to}") if there else None


def _association(known: AwsAdoption, row: Row) -> ExistingResource | None:
    table, subnet = known.owner(row, "routeTableId"), known.owner(row, "subnetId")
    there = any(subnet and association.get("SubnetId") == subnet for association in known.table(table)["Associations"])
    return ExistingResource(f"{subnet}/{table}") if there else None


def _object(known: AwsAdoption, row: Row) -> ExistingResource | None:
    bucket = known.owner(row, "bucket")
    return ExistingResource(f"{bucket}/{row['inputs']['key']}") if bucket else None


def _target(known: AwsAdoption, row: Row) -> ExistingResource | None:
    rule = known.owner(row, "rule")
    targets = known.account.client("events").list_targets_by_rule(Rule=rule)["Targets"] if rule else ()
    ids = [target["Id"] for target in targets]
    return next((known.refreshed(row, f"{rule}-{id_}", id_, rule=str(rule)) for id_ in ids), None)


def _role_policy(known: AwsAdoption, row: Row) -> ExistingResource | None:
    """A stack's role has one inline policy."""
    role = known.owner(row, "role")
    iam = known.account.client("iam", GLOBAL_REGION)
    policies = iam.list_role_policies(RoleName=role)["PolicyNames"] if role else ()
    return next((known.refreshed(row, f"{role}:{name}", name) for name in policies), None)


def _attachment(known: AwsAdoption, row: Row) -> ExistingResource | None:
    role = known.owner(row, "role")
    return ExistingResource(f"{role}/{row['inputs']['policyArn']}") if role else None


def _access(*keys: str, joint: str) -> Callable[[AwsAdoption, Row], ExistingResource | None]:
    """Access to a cluster of EKS has the id of the cluster and of what the stack file names, joined."""

    def find(known: AwsAdoption, row: Row) -> ExistingResource | None:
        cluster = next((known.ids.get(urn) for urn in row["dependencies"] if "$aws:eks/cluster:Cluster::" in urn), None)
        return ExistingResource(joint.join([cluster, *(row["inputs"][key] for key in keys)])) if cluster else None

    return find


def _scaling_policy(known: AwsAdoption, row: Row) -> ExistingResource | None:
    group = known.owner(row, "autoscalingGroupName")
    if not group:
        return None
    query = {"AutoScalingGroupName": group}
    policies = known.account.listed("autoscaling", "describe_policies", "ScalingPolicies", **query)
    names = [policy["PolicyName"] for policy in policies]
    return next((known.refreshed(row, name, name, autoscalingGroupName=group) for name in names), None)


UNTAGGED: dict[str, Callable[[AwsAdoption, Row], ExistingResource | None]] = {
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
