"""Nodes have no address of the internet: people come through the entrance, the nodes go out through a gateway.

Source: EC2 API, InstanceNetworkInterfaceSpecification (with a second interface the launch would fail anyway).
"""

from __future__ import annotations

from collections.abc import Iterator

from infra.graph.policy.rule import Resource, Stack, Violation, rule
from infra.graph.policy.wire import (
    INSTANCE,
    LAUNCH_CONFIGURATION,
    LAUNCH_TEMPLATE,
    SPOT_INSTANCE,
    false,
    items,
    mapping,
    nested,
    true,
)

SUBNET = "aws:ec2/subnet:Subnet"
DEFAULT_SUBNET = "aws:ec2/defaultSubnet:DefaultSubnet"
ENTRANCE = "gpufleet:entrance"
PUBLIC = f"must be false: only the entrance of a stack stands in the internet, with one interface and tagged {ENTRANCE}"


@rule("public-address", LAUNCH_TEMPLATE, LAUNCH_CONFIGURATION, INSTANCE, SPOT_INSTANCE)
def public_address(resource: Resource, stack: Stack) -> Iterator[Violation]:
    if _is_entrance(resource):
        return
    if not false(resource.inputs.get("associatePublicIpAddress")):
        yield "associatePublicIpAddress", PUBLIC
    for path, interface in nested(resource.inputs, "networkInterfaces"):
        if not false(interface.get("associatePublicIpAddress")):
            yield f"{path}.associatePublicIpAddress", PUBLIC


@rule("public-by-default", SUBNET, DEFAULT_SUBNET)
def public_by_default(resource: Resource, stack: Stack) -> Iterator[Violation]:
    if not false(resource.inputs.get("mapPublicIpOnLaunch")):
        yield "mapPublicIpOnLaunch", "must be false: every machine started here would stand in the internet"


def _is_entrance(resource: Resource) -> bool:
    """It says so itself, or its instances do, and nothing but its one interface leads to it."""
    own = mapping(resource.inputs.get("tags"))
    made = [mapping(spec.get("tags")) for _, spec in nested(resource.inputs, "tagSpecifications")]
    return len(items(resource.inputs.get("networkInterfaces"))) <= 1 and any(
        true(t.get(ENTRANCE)) for t in (own, *made)
    )
