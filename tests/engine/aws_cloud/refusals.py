"""What AWS refuses to make, in its own words.

Sources: EC2 API Reference, "Error codes"; VPC User Guide, "Subnet CIDR blocks"; the API reference of each service.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from ipaddress import ip_network
from typing import Any

from aws_cloud.kinds import Kind
from aws_cloud.kinds_ec2 import EC2, SUBNET, VPC
from aws_cloud.store import Store

Check = Callable[[Store, Mapping[str, Any]], None]

EC2_ID = re.compile(r"(?P<prefix>[a-z]+)-0[0-9a-f]{16}")
EARLIER = {"cr"}  # what a stack may name that was there before it: capacity reservations
OURS = {
    prefix: type_.rpartition(":")[2]
    for type_, kind in EC2.items()
    if "-0{" in kind.id and (prefix := kind.id.split("-")[0]) not in EARLIER
}


class Refused(Exception):
    """The answer of AWS instead of the deed: its error code and its message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"api error {code}: {message}")
        self.code, self.message = code, message


def check(store: Store, type_: str, kind: Kind, inputs: Mapping[str, Any], region: str) -> None:
    """Raises Refused when a resource cannot be made of these inputs."""
    for code, names in kind.unique.items():
        wanted = [inputs.get(name) for name in names]
        for row in store.rows("type = ? and region = ?", type_, region):
            if row.state == "" and any(wanted) and wanted == [row.inputs.get(name) for name in names]:
                told = ", ".join(
                    f"{name} {value!r}" for name, value in zip(names, wanted, strict=True) if value is not None
                )
                raise Refused(code, f"{told} is already in use by {row.id}")
    for id_ in set(_ec2_ids(inputs)):
        if not store.rows("id = ? and state in ('', 'running')", id_):
            name = OURS[id_.split("-")[0]]
            raise Refused(f"Invalid{name}ID.NotFound", f"The {name} ID '{id_}' does not exist")
    if special := SPECIAL.get(type_):
        special(store, inputs)


def _ec2_ids(value: Any) -> Iterator[str]:
    """The ids of EC2 in some inputs, of the kinds that this cloud makes: reservations and images are not its own."""
    if isinstance(value, str):
        if (found := EC2_ID.fullmatch(value)) and found["prefix"] in OURS:
            yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _ec2_ids(item)
    elif isinstance(value, list):
        for item in value:
            yield from _ec2_ids(item)


def _subnet(store: Store, inputs: Mapping[str, Any]) -> None:
    net = ip_network(inputs["cidrBlock"])
    (vpc,) = store.rows("type = ? and id = ?", VPC, inputs["vpcId"])
    if not net.subnet_of(ip_network(vpc.inputs["cidrBlock"])):  # pyright: ignore[reportArgumentType]
        raise Refused("InvalidSubnet.Range", f"The CIDR '{net}' is invalid: it is outside {vpc.inputs['cidrBlock']}")
    for other in store.of(SUBNET):
        if other.inputs["vpcId"] == vpc.id and net.overlaps(ip_network(other.inputs["cidrBlock"])):
            raise Refused("InvalidSubnet.Conflict", f"The CIDR '{net}' conflicts with another subnet ({other.id})")


def _route(store: Store, inputs: Mapping[str, Any]) -> None:
    """An internet gateway serves only the VPC that it is attached to."""
    if not inputs.get("gatewayId"):
        return
    (table,), (gateway,) = (store.rows("id = ?", inputs[name]) for name in ("routeTableId", "gatewayId"))
    if table.inputs["vpcId"] != gateway.inputs.get("vpcId"):
        raise Refused("InvalidParameterValue", f"{table.id} and {gateway.id} belong to different networks")


SPECIAL: Mapping[str, Check] = {SUBNET: _subnet, "aws:ec2/route:Route": _route}
