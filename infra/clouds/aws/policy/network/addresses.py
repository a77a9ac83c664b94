"""Nodes have no address of the internet: people come through the entrance, the nodes go out through a gateway.

Source: EC2 API, InstanceNetworkInterfaceSpecification (with a second interface the launch would fail anyway).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from infra.clouds.aws.policy.types import INSTANCE, LAUNCH_CONFIGURATION, LAUNCH_TEMPLATE, SPOT_INSTANCE
from infra.clouds.tags import ENTRANCE
from infra.policy.rule import Resource, Violation, rule
from infra.policy.wire import false, items, mapping, nested, true

SUBNET = "aws:ec2/subnet:Subnet"
DEFAULT_SUBNET = "aws:ec2/defaultSubnet:DefaultSubnet"
ELASTIC_IP = "aws:ec2/eip:Eip"
ELASTIC_IP_ASSOCIATION = "aws:ec2/eipAssociation:EipAssociation"
NOTEBOOK = "aws:sagemaker/notebookInstance:NotebookInstance"
DATABASES = ("aws:rds/instance:Instance", "aws:rds/cluster:Cluster", "aws:rds/clusterInstance:ClusterInstance")
PUBLIC = f"must be false: only the entrance of a stack stands in the internet, with one interface and tagged {ENTRANCE}"


@rule("public-address", LAUNCH_TEMPLATE, LAUNCH_CONFIGURATION, INSTANCE, SPOT_INSTANCE)
def public_address(resource: Resource) -> Iterator[Violation]:
    """Only a stack's entrance has an address of the internet."""
    if _is_entrance(resource):
        return
    if not false(resource.inputs.get("associatePublicIpAddress")):
        yield "associatePublicIpAddress", PUBLIC
    for path, interface in nested(resource.inputs, "networkInterfaces"):
        if not false(interface.get("associatePublicIpAddress")):
            yield f"{path}.associatePublicIpAddress", PUBLIC
        yield from _ipv6(interface, f"{path}.")
    yield from _ipv6(resource.inputs)


@rule("public-by-default", SUBNET, DEFAULT_SUBNET)
def public_by_default(resource: Resource) -> Iterator[Violation]:
    """A subnet gives nobody an address of the internet unasked; those of IPv6 are all such."""
    for key in ("mapPublicIpOnLaunch", "assignIpv6AddressOnCreation"):
        if not false(resource.inputs.get(key)):
            yield key, "must be false: every machine started here would have a public IP"


@rule("no-public-address-later", ELASTIC_IP, ELASTIC_IP_ASSOCIATION)
def no_public_address_later(resource: Resource) -> Iterator[Violation]:
    """An Elastic IP is a NAT gateway's, never a machine's: that one would get past the rule above."""
    for key in ("instance", "instanceId", "networkInterface", "networkInterfaceId"):
        if resource.inputs.get(key) is not None:
            yield key, "gives a machine an address of the internet; let it go out through a NAT gateway"


@rule("notebook-stays-inside", NOTEBOOK)
def notebook_stays_inside(resource: Resource) -> Iterator[Violation]:
    """A managed notebook reaches the internet through the VPC, and its users are not root; without a word both are so.

    Source: Amazon SageMaker Developer Guide, "Connect a notebook instance in a VPC to external resources".
    """
    for key in ("directInternetAccess", "rootAccess"):
        if resource.inputs.get(key) != "Disabled":
            yield key, "must be `Disabled`"


@rule("database-stays-inside", *DATABASES)
def database_stays_inside(resource: Resource) -> Iterator[Violation]:
    """A database has no address of the internet, is encrypted, and its password not in the state (RDS User Guide)."""
    if not false(resource.inputs.get("publiclyAccessible")):
        yield "publiclyAccessible", "must be false: experiments and models would be reachable from the internet"
    if resource.type != DATABASES[2] and not true(resource.inputs.get("storageEncrypted")):
        yield "storageEncrypted", "must be true"
    for key in ("password", "masterPassword"):
        if resource.inputs.get(key) is not None:
            yield key, "must not be given: let RDS manage it (manageMasterUserPassword)"


def _is_entrance(resource: Resource) -> bool:
    """It says so itself, or its instances do, and nothing but its one interface leads to it."""
    own = mapping(resource.inputs.get("tags"))
    specified = [mapping(spec.get("tags")) for _, spec in nested(resource.inputs, "tagSpecifications")]
    return len(items(resource.inputs.get("networkInterfaces"))) <= 1 and any(
        true(t.get(ENTRANCE)) for t in (own, *specified)
    )


def _ipv6(inputs: Mapping[str, Any], below: str = "") -> Iterator[Violation]:
    """EC2's IPv6 addresses are of the internet, whatever the network's gateways."""
    for key in ("ipv6AddressCount", "ipv6Addresses"):
        if inputs.get(key) not in (None, 0, []):
            yield f"{below}{key}", PUBLIC
