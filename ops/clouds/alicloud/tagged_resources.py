"""The existing resources of an account with a stack's tags, and the machines of its groups.

Sources: Tag Service, ListTagResources; ECS API, DescribeInstances, DescribeAutoProvisioningGroupInstances and
DescribeElasticityAssurances (without a status it lists `Active` ones alone, and with `All` released ones,
too); ESS API, DescribeScalingInstances; KMS API, DescribeKey (a key that is pending deletion keeps its tags).
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
MACHINE_PARTS = {"ecs/disk", "ecs/eni", "ecs/volume"}  # they are created and deleted with their machine
ASSURANCE = "ecs/elasticityassurance"  # prepaid and never refunded: it ends by itself
PAGE = 100


@dataclass(frozen=True)
class TaggedResource:
    """A resource with the stack's tags. name: its logical name, empty without one. ends: when it expires."""

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
    """An ECS instance. made_by: its group, empty where groups were not looked up."""

    id: str
    state: str
    tags: Tags
    hostname: str
    private_address: str
    public_address: str
    made_by: str = ""
    attached: Collection[str] = field(default=())


def resources(account: Account, tags: Tags) -> list[TaggedResource]:
    """All existing resources with all of these tags."""
    query = {"Tags": json.dumps(dict(tags)), "Category": "Custom", "PageSize": PAGE}
    items = account.listed("tag", "ListTagResources", "TagResources", **query)
    carrying = [TaggedResource(item["ResourceARN"], _tags(item.get("Tags", ()))) for item in items]
    instance_ids = {instance.id for instance in instances(account, tags)}
    separately = {*MACHINE_PARTS, ASSURANCE}
    listed = [
        resource for resource in carrying if resource.kind not in separately and _lives(account, resource, instance_ids)
    ]
    return [*listed, *_assurances(account, tags)]


def instances(account: Account, tags: Tags) -> list[Instance]:
    """The stack's instances, in the order of their addresses. A released one is no longer listed."""
    query = {"Tag": _tag_filter(tags), "MaxResults": PAGE}
    described = [
        _instance(instance) for instance in account.listed("ecs", "DescribeInstances", "Instances", "Instance", **query)
    ]
    return sorted(
        described,
        key=lambda instance: ([int(part) for part in instance.private_address.split(".") if part], instance.id),
    )


def members(account: Account, groups: Collection[str]) -> dict[str, str]:
    """By instance, the group that started it. groups: ids of any resources; other kinds than groups are skipped."""
    return {instance: group for group in groups for instance in _members(account, group)}


def _members(account: Account, group: str) -> Iterator[str]:
    if group.startswith("asg-"):
        page = 1
        while True:
            query = {"ScalingGroupId": group, "PageSize": PAGE, "PageNumber": page}
            response = account.call("ess", "DescribeScalingInstances", **query)
            yield from (instance["InstanceId"] for instance in response.get("ScalingInstances", ()))
            if page * PAGE >= response.get("TotalCount", 0):
                return
            page += 1
    elif group.startswith("apg-"):
        response = account.call("ecs", "DescribeAutoProvisioningGroupInstances", AutoProvisioningGroupId=group)
        yield from (instance["InstanceId"] for instance in response["Instances"].get("Instance", ()))


def _assurances(account: Account, tags: Tags) -> list[TaggedResource]:
    """Assurances that were bought and have not expired, or not started yet."""
    query = {"Tag": _tag_filter(tags), "Status": "All", "MaxResults": PAGE}
    keys = ("ElasticityAssuranceSet", "ElasticityAssuranceItem")
    items = account.listed("ecs", "DescribeElasticityAssurances", *keys, **query)
    return [
        TaggedResource(
            f"arn:acs:ecs:{account.region}::elasticityassurance/{item['PrivatePoolOptionsId']}",
            _tags(item["Tags"]["Tag"], "TagKey", "TagValue"),
            item["EndTime"],
        )
        for item in items
        if item["Status"] != "Released"
    ]


def _lives(account: Account, resource: TaggedResource, instance_ids: Collection[str]) -> bool:
    if resource.kind == "ecs/instance":
        return resource.id in instance_ids
    if resource.kind == "kms/key":
        return account.call("kms", "DescribeKey", KeyId=resource.id)["KeyMetadata"]["KeyState"] != "PendingDeletion"
    return True


def _instance(description: Mapping[str, Any]) -> Instance:
    private = description.get("VpcAttributes", {}).get("PrivateIpAddress", {}).get("IpAddress", ())
    public = description.get("PublicIpAddress", {}).get("IpAddress", ())
    return Instance(
        id=description["InstanceId"],
        state=STATES.get(description["Status"], "stopped"),
        tags=_tags(description.get("Tags", {}).get("Tag", ()), "TagKey", "TagValue"),
        hostname=description.get("HostName", ""),
        private_address=next(iter(private), ""),
        public_address=description.get("EipAddress", {}).get("IpAddress") or next(iter(public), ""),
    )


def _tag_filter(tags: Tags) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def _tags(items: Sequence[Mapping[str, str]], key: str = "Key", value: str = "Value") -> dict[str, str]:
    return {item[key]: item[value] for item in items}
