"""The existing resources of an account with a stack's tags, whether or not a state has them.

The tagging API lists most services, but neither roles nor scaling groups nor budgets, and still lists deleted resources
for a while (Resource Groups Tagging API Reference, GetResources, "Services that support the API"): those that
it omits are listed by their own APIs, and what it lists is checked where a service keeps deleted resources visible.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from infra.clouds.tags import LOGICAL_NAME
from infra.printable import one_line
from ops.clouds.aws.account import GLOBAL_REGION, Account
from ops.clouds.aws.resource_ids import Arn, identifier

Tags = Mapping[str, str]

LIVING = ("pending", "running", "shutting-down", "stopping", "stopped")  # states of instances; `terminated` is the rest
KEY_PAIR = "ec2/key-pair"
GENERATED = re.compile(r".+-[0-9a-f]{7}")  # Pulumi's names: the logical one and seven random digits
MEMBERSHIP = (  # the tags by which AWS marks what a fleet or group started; that of EKS has a scaling group of its own
    ("eks:cluster-name", "eks:nodegroup-name"),
    ("aws:ec2:fleet-id",),
    ("aws:autoscaling:groupName",),
)


@dataclass(frozen=True)
class TaggedResource:
    """A resource with the stack's tags. id: as Pulumi has it. name: its logical name, empty without one."""

    arn: Arn
    tags: Tags

    @property
    def kind(self) -> str:
        return self.arn.kind

    @property
    def id(self) -> str:
        return identifier(self.arn)

    @property
    def name(self) -> str:
        return self.tags.get(LOGICAL_NAME, "")

    @property
    def names(self) -> tuple[str, str]:
        return self.id, self.arn.text

    def __str__(self) -> str:
        return one_line(f"{self.kind} {self.id} {self.name}".rstrip())


@dataclass(frozen=True)
class Instance:
    """An EC2 instance that is not terminated. made_by: the engine's id of its fleet or group, empty without one.

    hostname: its own name. attached: ids of its volumes and interfaces, which end with it.
    """

    id: str
    state: str
    tags: Tags
    hostname: str
    private_address: str
    public_address: str
    spot: bool
    attached: frozenset[str]

    @property
    def made_by(self) -> str:
        makers = (":".join(self.tags.get(key, "") for key in keys) for keys in MEMBERSHIP)
        return next((maker for maker in makers if maker.strip(":")), "")


def resources(account: Account, tags: Tags) -> list[TaggedResource]:
    """All existing resources with all of these tags, without repetitions."""
    by_arn = {resource.arn.text: resource for resource in (*_listed(account, tags), *_unlisted(account, tags))}
    dead = _dead(account, list(by_arn.values()), {instance.id for instance in instances(account, tags)})
    return [resource for arn, resource in sorted(by_arn.items()) if arn not in dead]


def instances(account: Account, tags: Tags) -> list[Instance]:
    """The stack's instances that are not terminated, in the order of their addresses."""
    filters = [*_filters(tags), {"Name": "instance-state-name", "Values": list(LIVING)}]
    reservations = account.listed("ec2", "describe_instances", "Reservations", Filters=filters)
    described = [_instance(instance) for reservation in reservations for instance in reservation["Instances"]]
    return sorted(
        described,
        key=lambda instance: ([int(part) for part in instance.private_address.split(".") if part], instance.id),
    )


def _instance(description: Mapping) -> Instance:
    disks = [device["Ebs"]["VolumeId"] for device in description.get("BlockDeviceMappings", ()) if "Ebs" in device]
    cards = [interface["NetworkInterfaceId"] for interface in description.get("NetworkInterfaces", ())]
    return Instance(
        id=description["InstanceId"],
        state=description["State"]["Name"],
        tags=_tags(description.get("Tags", ())),
        hostname=description.get("PrivateDnsName", "").partition(".")[0],
        private_address=description.get("PrivateIpAddress", ""),
        public_address=description.get("PublicIpAddress", ""),
        spot=description.get("InstanceLifecycle") == "spot",
        attached=frozenset([*disks, *cards]),
    )


def _listed(account: Account, tags: Tags) -> Iterator[TaggedResource]:
    filters = [{"Key": key, "Values": [value]} for key, value in tags.items()]
    for region in dict.fromkeys((account.region, GLOBAL_REGION)):  # instance profiles have no region
        for mapping in account.listed(
            "resourcegroupstaggingapi", "get_resources", "ResourceTagMappingList", region=region, TagFilters=filters
        ):
            arn = Arn.parse(mapping["ResourceARN"])
            if arn.kind != KEY_PAIR and (region == account.region or not arn.region):
                yield TaggedResource(arn, _tags(mapping["Tags"]))


def _unlisted(account: Account, tags: Tags) -> Iterator[TaggedResource]:
    """Key pairs are among them: the tagging API has another id for them than the engine."""
    owner = account.client("sts").get_caller_identity()["Account"]
    for pair in account.client("ec2").describe_key_pairs(Filters=_filters(tags))["KeyPairs"]:
        arn = f"arn:aws:ec2:{account.region}:{owner}:key-pair/{pair['KeyName']}"
        yield TaggedResource(Arn.parse(arn), _tags(pair["Tags"]))
    for group in account.listed(
        "autoscaling", "describe_auto_scaling_groups", "AutoScalingGroups", Filters=_filters(tags)
    ):
        yield TaggedResource(Arn.parse(group["AutoScalingGroupARN"]), _tags(group["Tags"]))
    yield from (resource for resource in _by_name(account, owner) if tags.items() <= resource.tags.items())


def _by_name(account: Account, owner: str) -> Iterator[TaggedResource]:
    """The tags of roles and budgets can only be read one by one; names that Pulumi did not generate are skipped."""
    iam, budgets = account.client("iam", GLOBAL_REGION), account.client("budgets", GLOBAL_REGION)
    for role in account.listed("iam", "list_roles", "Roles", region=GLOBAL_REGION):
        if GENERATED.fullmatch(role["RoleName"]):
            yield TaggedResource(Arn.parse(role["Arn"]), _tags(iam.list_role_tags(RoleName=role["RoleName"])["Tags"]))
    for budget in account.listed("budgets", "describe_budgets", "Budgets", region=GLOBAL_REGION, AccountId=owner):
        if GENERATED.fullmatch(budget["BudgetName"]):
            arn = f"arn:aws:budgets::{owner}:budget/{budget['BudgetName']}"
            own = _tags(budgets.list_tags_for_resource(ResourceARN=arn)["ResourceTags"])
            yield TaggedResource(Arn.parse(arn), own)


def _dead(account: Account, tagged: Sequence[TaggedResource], instance_ids: set[str]) -> set[str]:
    """ARNs of listed resources that are deleted."""

    def ids(kind: str) -> dict[str, str]:
        return {resource.id: resource.arn.text for resource in tagged if resource.kind == kind}

    dead = {arn for id_, arn in ids("ec2/instance").items() if id_ not in instance_ids}
    ec2, kms = account.client("ec2"), account.client("kms")
    if gateways := ids("ec2/natgateway"):
        by_id = [{"Name": "nat-gateway-id", "Values": list(gateways)}]
        items = ec2.describe_nat_gateways(Filter=by_id)["NatGateways"]
        dead |= {gateways[item["NatGatewayId"]] for item in items if item["State"] == "deleted"}
    if fleets := ids("ec2/fleet"):
        items = ec2.describe_fleets(FleetIds=list(fleets))["Fleets"]
        dead |= {fleets[item["FleetId"]] for item in items if item["FleetState"].startswith("deleted")}
    states = {arn: kms.describe_key(KeyId=key)["KeyMetadata"]["KeyState"] for key, arn in ids("kms/key").items()}
    return dead | {arn for arn, state in states.items() if state == "PendingDeletion"}


def _filters(tags: Tags) -> list[dict]:
    return [{"Name": f"tag:{key}", "Values": [value]} for key, value in tags.items()]


def _tags(items: Sequence[Mapping[str, str]]) -> dict[str, str]:
    return {item["Key"]: item["Value"] for item in items}
