"""What carries a stack's tags in the account and still lives, and the machines of its groups.

Sources: Tag Service, ListTagResources; ECS API, DescribeInstances, DescribeAutoProvisioningGroupInstances and
DescribeElasticityAssurances (where no status is asked for it tells `Active` ones alone, and `All` has released ones
too); ESS API, DescribeScalingInstances; KMS API, DescribeKey (a key that waits for its deletion keeps its tags).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from infra.clouds.tags import LOGICAL_NAME
from infra.printable import one_line
from ops.clouds.alicloud.account import Account

Tags = Mapping[str, str]

STATES = {"Pending": "pending", "Starting": "pending", "Running": "running", "Stopping": "stopping"}
BORN_WITH = {"ecs/disk", "ecs/eni", "ecs/volume"}  # they came with their machine and end with it
ASSURANCE = "ecs/elasticityassurance"  # paid up front and never refunded: it ends by itself
PAGE = 100


@dataclass(frozen=True)
class Thing:
    """Something that carries the stack's tags. name: its logical name, empty without one. ends: when it has run out."""

    arn: str
    tags: Tags
    ends: str = ""

    @property
    def kind(self) -> str:
        product, resource = self.arn.split(":", 5)[2], self.arn.split(":", 5)[5]
        return f"{product}/{resource.partition('/')[0]}"

    @property
    def id(self) -> str:
        return self.arn.partition("/")[2]

    @property
    def names(self) -> tuple[str, str]:
        return self.id, self.arn

    @property
    def name(self) -> str:
        return self.tags.get(LOGICAL_NAME, "")

    def __str__(self) -> str:
        return one_line(f"{self.kind} {self.id} {self.name}".rstrip())


@dataclass(frozen=True)
class Instance:
    """An ECS instance. made_by: its group, empty where nobody asked for groups."""

    id: str
    state: str
    tags: Tags
    hostname: str
    private_address: str
    public_address: str
    made_by: str = ""
    attached: Collection[str] = field(default=())


def things(account: Account, tags: Tags) -> list[Thing]:
    """All that lives and carries all of these tags."""
    asked = {"Tags": json.dumps(dict(tags)), "Category": "Custom", "PageSize": PAGE}
    told = account.listed("tag", "ListTagResources", "TagResources", **asked)
    found = [Thing(each["ResourceARN"], _tags(each.get("Tags", ()))) for each in told]
    living = {each.id for each in instances(account, tags)}
    apart = {*BORN_WITH, ASSURANCE}
    listed = [each for each in found if each.kind not in apart and _lives(account, each, living)]
    return [*listed, *_assurances(account, tags)]


def instances(account: Account, tags: Tags) -> list[Instance]:
    """The stack's instances, in the order of their addresses. A released one is not listed any more."""
    asked = {"Tag": _wanted(tags), "MaxResults": PAGE}
    found = [_instance(each) for each in account.listed("ecs", "DescribeInstances", "Instances", "Instance", **asked)]
    return sorted(found, key=lambda each: ([int(part) for part in each.private_address.split(".") if part], each.id))


def members(account: Account, groups: Collection[str]) -> dict[str, str]:
    """By instance, the group that started it. groups: ids, of whatever kind; those of no groups are left alone."""
    return {each: group for group in groups for each in _members(account, group)}


def _members(account: Account, group: str) -> Iterator[str]:
    if group.startswith("asg-"):
        page = 1
        while True:
            asked = {"ScalingGroupId": group, "PageSize": PAGE, "PageNumber": page}
            told = account.call("ess", "DescribeScalingInstances", **asked)
            yield from (each["InstanceId"] for each in told.get("ScalingInstances", ()))
            if page * PAGE >= told.get("TotalCount", 0):
                return
            page += 1
    elif group.startswith("apg-"):
        told = account.call("ecs", "DescribeAutoProvisioningGroupInstances", AutoProvisioningGroupId=group)
        yield from (each["InstanceId"] for each in told["Instances"].get("Instance", ()))


def _assurances(account: Account, tags: Tags) -> list[Thing]:
    """What was bought and has not run out, or not begun yet."""
    asked = {"Tag": _wanted(tags), "Status": "All", "MaxResults": PAGE}
    keys = ("ElasticityAssuranceSet", "ElasticityAssuranceItem")
    told = account.listed("ecs", "DescribeElasticityAssurances", *keys, **asked)
    return [
        Thing(
            f"arn:acs:ecs:{account.region}::elasticityassurance/{each['PrivatePoolOptionsId']}",
            _tags(each["Tags"]["Tag"], "TagKey", "TagValue"),
            each["EndTime"],
        )
        for each in told
        if each["Status"] != "Released"
    ]


def _lives(account: Account, thing: Thing, living: Collection[str]) -> bool:
    if thing.kind == "ecs/instance":
        return thing.id in living
    if thing.kind == "kms/key":
        return account.call("kms", "DescribeKey", KeyId=thing.id)["KeyMetadata"]["KeyState"] != "PendingDeletion"
    return True


def _instance(told: Mapping[str, Any]) -> Instance:
    private = told.get("VpcAttributes", {}).get("PrivateIpAddress", {}).get("IpAddress", ())
    public = told.get("PublicIpAddress", {}).get("IpAddress", ())
    return Instance(
        id=told["InstanceId"],
        state=STATES.get(told["Status"], "stopped"),
        tags=_tags(told.get("Tags", {}).get("Tag", ()), "TagKey", "TagValue"),
        hostname=told.get("HostName", ""),
        private_address=next(iter(private), ""),
        public_address=told.get("EipAddress", {}).get("IpAddress") or next(iter(public), ""),
    )


def _wanted(tags: Tags) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def _tags(told: Sequence[Mapping[str, str]], key: str = "Key", value: str = "Value") -> dict[str, str]:
    return {each[key]: each[value] for each in told}
