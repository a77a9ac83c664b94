"""What carries a stack's tags in the account and still lives, whatever any state says.

The tagging API lists most services, but neither roles nor scaling groups nor budgets, and goes on listing for a while
what is gone already (Resource Groups Tagging API Reference, GetResources, "Services that support the API"): those that
it leaves out are asked for, and what it lists is asked whether it lives where its service keeps the dead.
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
MADE_UP = re.compile(r".+-[0-9a-f]{7}")  # Pulumi's names: the logical one and seven random digits
MEMBERSHIP = (  # the tags by which AWS marks what a fleet or group started; that of EKS has a scaling group of its own
    ("eks:cluster-name", "eks:nodegroup-name"),
    ("aws:ec2:fleet-id",),
    ("aws:autoscaling:groupName",),
)


@dataclass(frozen=True)
class Thing:
    """Something that carries the stack's tags. id: as Pulumi has it. name: its logical name, empty without one."""

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

    hostname: what it calls itself. attached: ids of its volumes and interfaces, which end with it.
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


def things(account: Account, tags: Tags) -> list[Thing]:
    """All that lives and carries all of these tags, each once."""
    found = {thing.arn.text: thing for thing in (*_listed(account, tags), *_unlisted(account, tags))}
    dead = _dead(account, list(found.values()), {each.id for each in instances(account, tags)})
    return [thing for arn, thing in sorted(found.items()) if arn not in dead]


def instances(account: Account, tags: Tags) -> list[Instance]:
    """The stack's instances that are not terminated, in the order of their addresses."""
    filters = [*_filters(tags), {"Name": "instance-state-name", "Values": list(LIVING)}]
    reservations = account.listed("ec2", "describe_instances", "Reservations", Filters=filters)
    found = [_instance(each) for reservation in reservations for each in reservation["Instances"]]
    return sorted(found, key=lambda each: ([int(part) for part in each.private_address.split(".") if part], each.id))


def _instance(told: Mapping) -> Instance:
    disks = [each["Ebs"]["VolumeId"] for each in told.get("BlockDeviceMappings", ()) if "Ebs" in each]
    cards = [each["NetworkInterfaceId"] for each in told.get("NetworkInterfaces", ())]
    return Instance(
        id=told["InstanceId"],
        state=told["State"]["Name"],
        tags=_tags(told.get("Tags", ())),
        hostname=told.get("PrivateDnsName", "").partition(".")[0],
        private_address=told.get("PrivateIpAddress", ""),
        public_address=told.get("PublicIpAddress", ""),
        spot=told.get("InstanceLifecycle") == "spot",
        attached=frozenset([*disks, *cards]),
    )


def _listed(account: Account, tags: Tags) -> Iterator[Thing]:
    wanted = [{"Key": key, "Values": [value]} for key, value in tags.items()]
    for region in dict.fromkeys((account.region, GLOBAL_REGION)):  # instance profiles have no region
        for each in account.listed(
            "resourcegroupstaggingapi", "get_resources", "ResourceTagMappingList", region=region, TagFilters=wanted
        ):
            arn = Arn.parse(each["ResourceARN"])
            if arn.kind != KEY_PAIR and (region == account.region or not arn.region):
                yield Thing(arn, _tags(each["Tags"]))


def _unlisted(account: Account, tags: Tags) -> Iterator[Thing]:
    """Key pairs are among them: the tagging API knows them by an id of which neither people nor the engine know."""
    owner = account.client("sts").get_caller_identity()["Account"]
    for pair in account.client("ec2").describe_key_pairs(Filters=_filters(tags))["KeyPairs"]:
        arn = f"arn:aws:ec2:{account.region}:{owner}:key-pair/{pair['KeyName']}"
        yield Thing(Arn.parse(arn), _tags(pair["Tags"]))
    for group in account.listed(
        "autoscaling", "describe_auto_scaling_groups", "AutoScalingGroups", Filters=_filters(tags)
    ):
        yield Thing(Arn.parse(group["AutoScalingGroupARN"]), _tags(group["Tags"]))
    yield from (thing for thing in _by_name(account, owner) if tags.items() <= thing.tags.items())


def _by_name(account: Account, owner: str) -> Iterator[Thing]:
    """Roles and budgets can only be asked one by one; a name of another form is none that the engine made up."""
    iam, budgets = account.client("iam", GLOBAL_REGION), account.client("budgets", GLOBAL_REGION)
    for role in account.listed("iam", "list_roles", "Roles", region=GLOBAL_REGION):
        if MADE_UP.fullmatch(role["RoleName"]):
            yield Thing(Arn.parse(role["Arn"]), _tags(iam.list_role_tags(RoleName=role["RoleName"])["Tags"]))
    for budget in account.listed("budgets", "describe_budgets", "Budgets", region=GLOBAL_REGION, AccountId=owner):
        if MADE_UP.fullmatch(budget["BudgetName"]):
            arn = f"arn:aws:budgets::{owner}:budget/{budget['BudgetName']}"
            own = _tags(budgets.list_tags_for_resource(ResourceARN=arn)["ResourceTags"])
            yield Thing(Arn.parse(arn), own)


def _dead(account: Account, found: Sequence[Thing], living: set[str]) -> set[str]:
    """ARNs of what is listed and gone."""

    def ids(kind: str) -> dict[str, str]:
        return {thing.id: thing.arn.text for thing in found if thing.kind == kind}

    dead = {arn for known, arn in ids("ec2/instance").items() if known not in living}
    ec2, kms = account.client("ec2"), account.client("kms")
    if gateways := ids("ec2/natgateway"):
        by_id = [{"Name": "nat-gateway-id", "Values": list(gateways)}]
        told = ec2.describe_nat_gateways(Filter=by_id)["NatGateways"]
        dead |= {gateways[each["NatGatewayId"]] for each in told if each["State"] == "deleted"}
    if fleets := ids("ec2/fleet"):
        told = ec2.describe_fleets(FleetIds=list(fleets))["Fleets"]
        dead |= {fleets[each["FleetId"]] for each in told if each["FleetState"].startswith("deleted")}
    states = {arn: kms.describe_key(KeyId=key)["KeyMetadata"]["KeyState"] for key, arn in ids("kms/key").items()}
    return dead | {arn for arn, state in states.items() if state == "PendingDeletion"}


def _filters(tags: Tags) -> list[dict]:
    return [{"Name": f"tag:{key}", "Values": [value]} for key, value in tags.items()]


def _tags(told: Sequence[Mapping[str, str]]) -> dict[str, str]:
    return {each["Key"]: each["Value"] for each in told}
