"""What AWS refuses to make, in its own words.

Sources: EC2 API Reference, "Error codes"; VPC User Guide, "Subnet CIDR blocks"; the API reference of each service.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from ipaddress import ip_network
from typing import Any

from cloud_provider.kinds import Kind, RefusedError, leaves, taken
from cloud_provider.store import Store

from aws_cloud.kinds_ec2 import EC2, SUBNET, VPC

Check = Callable[[Store, Mapping[str, Any]], None]

EC2_ID = re.compile(r"(?P<prefix>[a-z]+)-0[0-9a-f]{16}")
EARLIER = {"cr"}  # what a stack may name that was there before it: capacity reservations
OURS = {
    prefix: type_.rpartition(":")[2]
    for type_, kind in EC2.items()
    if "-0{" in kind.id and (prefix := kind.id.split("-")[0]) not in EARLIER
}


def check(store: Store, type_: str, kind: Kind, inputs: Mapping[str, Any], region: str) -> None:
    """Raises RefusedError when a resource cannot be made of these inputs."""
    taken(store, type_, kind, inputs, region)
    for id_ in _ec2_ids(inputs):
        if not store.rows("id = ? and state in ('', 'running')", id_):
            name = OURS[id_.split("-")[0]]
            raise RefusedError(f"Invalid{name}ID.NotFound", f"The {name} ID '{id_}' does not exist")
    if special := SPECIAL.get(type_):
        special(store, inputs)


def _ec2_ids(inputs: Mapping[str, Any]) -> set[str]:
    """The ids of EC2 in some inputs, of the kinds that this cloud makes: reservations and images are not its own."""
    return {text for text in leaves(inputs) if (found := EC2_ID.fullmatch(text)) and found["prefix"] in OURS}


def _subnet(store: Store, inputs: Mapping[str, Any]) -> None:
    net = ip_network(inputs["cidrBlock"])
    (vpc,) = store.rows("type = ? and id = ?", VPC, inputs["vpcId"])
    if not net.subnet_of(ip_network(vpc.inputs["cidrBlock"])):  # pyright: ignore[reportArgumentType]
        raise RefusedError(
            "InvalidSubnet.Range", f"The CIDR '{net}' is invalid: it is outside {vpc.inputs['cidrBlock']}"
        )
    for other in store.of(SUBNET):
        if other.inputs["vpcId"] == vpc.id and net.overlaps(ip_network(other.inputs["cidrBlock"])):
            raise RefusedError("InvalidSubnet.Conflict", f"The CIDR '{net}' conflicts with another subnet ({other.id})")


def _route(store: Store, inputs: Mapping[str, Any]) -> None:
    """An internet gateway serves only the VPC that it is attached to."""
    if not inputs.get("gatewayId"):
        return
    (table,), (gateway,) = (store.rows("id = ?", inputs[name]) for name in ("routeTableId", "gatewayId"))
    if table.inputs["vpcId"] != gateway.inputs.get("vpcId"):
        raise RefusedError("InvalidParameterValue", f"{table.id} and {gateway.id} belong to different networks")


SPECIAL: Mapping[str, Check] = {SUBNET: _subnet, "aws:ec2/route:Route": _route}
