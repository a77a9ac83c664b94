"""Who starts how many machines of what, read from the arguments of an instance, a fleet, a scaling or a node group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cloud_provider.kinds import RefusedError
from cloud_provider.store import Row, Store

from aws_cloud.kinds_ec2 import FLEET, INSTANCE, TEMPLATE
from aws_cloud.kinds_services import NODE_GROUP, SCALING_GROUP


@dataclass(frozen=True, kw_only=True)
class Order:
    """What shall be started. template: the arguments of a launch template. subnets: taken in turn."""

    template: Mapping[str, Any]
    count: int
    subnets: Sequence[str]
    type: str
    tags: Mapping[str, str] = field(default_factory=dict)

    def tags_for(self, resource: str) -> dict[str, str]:
        """Those of the template for an `instance`, a `volume` or a `network-interface`; the order's for instances."""
        parts = self.template.get("tagSpecifications") or []
        named = [part.get("tags") or {} for part in parts if part["resourceType"] == resource]
        own = self.tags if resource == "instance" else {}
        return {key: value for tags in [*named, own] for key, value in tags.items()}


def order(store: Store, row: Row) -> Order:
    """What a resource that starts machines asks for. Raises RefusedError."""
    return ORDERS[row.type](store, row)


def _instance(store: Store, row: Row) -> Order:
    inputs = row.inputs
    template = _template(store, inputs.get("launchTemplate"))
    cards = template.get("networkInterfaces") or [{}]
    return Order(
        template={**template, **({"imageId": inputs["ami"]} if inputs.get("ami") else {})},
        count=1,
        subnets=[inputs.get("subnetId") or cards[0].get("subnetId") or ""],
        type=inputs.get("instanceType") or template.get("instanceType", ""),
    )


def _fleet(store: Store, row: Row) -> Order:
    (config, *_), target = row.inputs["launchTemplateConfigs"], row.inputs["targetCapacitySpecification"]
    template = _template(store, config["launchTemplateSpecification"])
    override = (config.get("overrides") or [{}])[0]
    cards = template.get("networkInterfaces") or [{}]
    return Order(
        template=template,
        count=int(target["totalTargetCapacity"]),
        subnets=[override.get("subnetId") or cards[0].get("subnetId") or ""],
        type=override.get("instanceType") or template["instanceType"],
        tags={"aws:ec2:fleet-id": row.id},
    )


def _scaling_group(store: Store, row: Row) -> Order:
    inputs = row.inputs
    mixed = (inputs.get("mixedInstancesPolicy") or {}).get("launchTemplate") or {}
    template = _template(store, inputs.get("launchTemplate") or mixed.get("launchTemplateSpecification"))
    override = (mixed.get("overrides") or [{}])[0]
    tags = {tag["key"]: tag["value"] for tag in inputs.get("tags") or [] if tag["propagateAtLaunch"]}
    return Order(
        template=template,
        count=int(inputs.get("desiredCapacity") or inputs["minSize"]),
        subnets=inputs["vpcZoneIdentifiers"],
        type=override.get("instanceType") or template["instanceType"],
        tags={**tags, "aws:autoscaling:groupName": row.id},
    )


def _node_group(store: Store, row: Row) -> Order:
    inputs = row.inputs
    template = _template(store, inputs.get("launchTemplate"))
    return Order(
        template=template,
        count=int(inputs["scalingConfig"]["desiredSize"]),
        subnets=inputs["subnetIds"],
        type=template.get("instanceType") or inputs["instanceTypes"][0],
        tags={
            "eks:cluster-name": inputs["clusterName"],
            "eks:nodegroup-name": inputs["nodeGroupName"],
            "aws:autoscaling:groupName": row.outputs["resources"][0]["autoscalingGroups"][0]["name"],
        },
    )


def _template(store: Store, named: Mapping[str, Any] | None) -> dict[str, Any]:
    """The arguments of a launch template that is named by id or name; nothing of none. Raises RefusedError."""
    if not named:
        return {"id": ""}
    id_ = named.get("id") or named.get("launchTemplateId") or ""
    name = named.get("name") or named.get("launchTemplateName") or ""
    for row in store.of(TEMPLATE):
        if id_ == row.id or (name and name == row.inputs["name"]):
            return {**row.inputs, "id": row.id}
    raise RefusedError("InvalidLaunchTemplateId.NotFound", f"The launch template '{id_ or name}' does not exist")


ORDERS: Mapping[str, Callable[[Store, Row], Order]] = {
    INSTANCE: _instance,
    FLEET: _fleet,
    SCALING_GROUP: _scaling_group,
    NODE_GROUP: _node_group,
}
