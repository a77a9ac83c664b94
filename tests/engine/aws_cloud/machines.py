"""Machines: started for an order, replaced and ended.

A machine has the disks and the network interfaces of its template as rows of their own, tagged by the template's tag
specifications: what a sweep of a real account would find.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from ipaddress import IPv4Address, IPv4Network
from itertools import cycle, islice
from typing import Any

from cloud_provider.kinds import RefusedError, filled
from cloud_provider.store import Row, Store

from aws_cloud.kinds import ACCOUNT
from aws_cloud.kinds_ec2 import EC2, FLEET, INSTANCE, INTERFACE, SUBNET, VOLUME
from aws_cloud.orders import Order, order

RESERVED = 4  # addresses at the start of a subnet that AWS keeps; and the last one (VPC User Guide)
RUNNING = "running"


def alone(store: Store, row: Row) -> Iterator[Row]:
    """A machine that was asked for by itself, with all there is to tell of it; then its parts. Raises RefusedError."""
    wanted = order(store, row)
    machine, *parts = _machine(row, wanted, wanted.subnets[0], _Addresses(store))
    yield replace(machine, state=RUNNING, tags={**wanted.tags_for("instance"), **row.tags})
    yield from parts


def filled_up(store: Store, maker: Row) -> Row:
    """Makes a fleet or group have as many machines as it asks for, ending the newest if there are too many.

    Returns its row as it now is. Raises RefusedError.
    """
    wanted = order(store, maker)
    present = of(store, maker)
    missing = wanted.count - len(present)
    if missing > 0:
        store.put([*_started(store, maker, replace(wanted, count=missing))])
    else:
        terminate(store, present[wanted.count :])
    return (
        replace(maker, outputs={**maker.outputs, "fulfilledCapacity": wanted.count}) if maker.type == FLEET else maker
    )


def of(store: Store, maker: Row) -> list[Row]:
    """The running machines of a fleet or group."""
    return store.rows("maker = ? and type = ? and state = ?", maker.id, INSTANCE, RUNNING)


def refills(maker: Row) -> bool:
    """Whether it starts another machine for one that ended: all do but one-shot fleets."""
    return maker.type != FLEET or maker.inputs.get("type", "maintain") == "maintain"


def terminate(store: Store, machines: Sequence[Row]) -> None:
    """Ends machines: they stay visible as terminated; their interfaces go, and their disks unless told to stay."""
    store.put(replace(machine, state="terminated") for machine in machines)
    for machine in machines:
        store.remove(part for part in store.rows("maker = ?", machine.id) if part.inputs["deleteOnTermination"])


def _started(store: Store, maker: Row, wanted: Order) -> Iterator[Row]:
    addresses = _Addresses(store)
    for subnet in islice(cycle(wanted.subnets), wanted.count):
        id_ = _id(INSTANCE)
        tags = wanted.tags_for("instance")
        arn = _arn(INSTANCE, id_, maker.region)
        row = Row(type=INSTANCE, id=id_, arn=arn, region=maker.region, maker=maker.id, state=RUNNING, tags=tags)
        yield from _machine(row, wanted, subnet, addresses)


def _machine(row: Row, wanted: Order, subnet_id: str, addresses: _Addresses) -> Iterator[Row]:
    template, zone = wanted.template, addresses.zone(subnet_id)
    cards = template.get("networkInterfaces") or [{}]
    interfaces = [_interface(row, wanted, card, subnet_id, addresses) for card in cards]
    private = interfaces[0].outputs["privateIp"]
    public = f"203.0.113.{int(IPv4Address(private)) % 254 + 1}"
    told = {
        "ami": template.get("imageId", ""),
        "availabilityZone": zone,
        "iamInstanceProfile": (template.get("iamInstanceProfile") or {}).get("arn", "").rpartition("/")[2],
        "instanceType": wanted.type,
        "keyName": template.get("keyName") or "",
        "launchTime": datetime.now(UTC).isoformat(),
        "primaryNetworkInterfaceId": interfaces[0].id,
        "privateDns": f"ip-{private.replace('.', '-')}.ec2.internal",
        "privateIp": private,
        "publicIp": public if cards[0].get("associatePublicIpAddress") == "true" else "",
        "subnetId": subnet_id,
        "vpcSecurityGroupIds": interfaces[0].inputs["securityGroups"],
    }
    used = {name: told[name] for name in ("iamInstanceProfile", "keyName", "subnetId", "vpcSecurityGroupIds")}
    inputs = row.inputs or {"launchTemplate": {"id": template["id"]}, **used}  # what a machine of a fleet holds on to
    yield replace(row, inputs=inputs, outputs={**told, **row.outputs})
    yield from interfaces
    for disk in template.get("blockDeviceMappings") or []:
        yield _part(VOLUME, row, wanted.tags_for("volume"), {"availabilityZone": zone, **(disk.get("ebs") or {})})


def _interface(row: Row, wanted: Order, card: Mapping[str, Any], subnet_id: str, addresses: _Addresses) -> Row:
    inputs = {"subnetId": subnet_id, "securityGroups": [], **card}
    made = _part(INTERFACE, row, wanted.tags_for("network-interface"), inputs)
    bare = card.get("interfaceType") == "efa-only"
    return replace(made, outputs={"privateIp": "" if bare else addresses.next(subnet_id)})


def _part(type_: str, machine: Row, tags: dict[str, str], inputs: dict[str, Any]) -> Row:
    id_ = _id(type_)
    ends = inputs.get("deleteOnTermination", "true") == "true"
    return Row(
        type=type_,
        id=id_,
        arn=_arn(type_, id_, machine.region),
        region=machine.region,
        maker=machine.id,
        inputs={**inputs, "deleteOnTermination": ends},
        tags=tags,
    )


def _id(type_: str) -> str:
    return filled(EC2[type_].id, {"hex": uuid.uuid4().hex[:16]})


def _arn(type_: str, id_: str, region: str) -> str:
    return filled(EC2[type_].arn, {"id": id_, "region": region, "account": ACCOUNT})


class _Addresses:
    """The free addresses of subnets, each given once."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.free: dict[str, Iterator[str]] = {}

    def zone(self, subnet_id: str) -> str:
        return self._subnet(subnet_id).inputs.get("availabilityZone", "")

    def next(self, subnet_id: str) -> str:
        if subnet_id not in self.free:
            self.free[subnet_id] = self._free(subnet_id)
        address = next(self.free[subnet_id], None)
        if address is None:
            raise RefusedError(
                "InsufficientFreeAddressesInSubnet", f"There are not enough free addresses in {subnet_id}"
            )
        return address

    def _subnet(self, subnet_id: str) -> Row:
        found = self.store.rows("type = ? and id = ?", SUBNET, subnet_id)
        if not found:
            raise RefusedError("InvalidSubnetID.NotFound", f"The subnet ID '{subnet_id}' does not exist")
        return found[0]

    def _free(self, subnet_id: str) -> Iterator[str]:
        taken = {row.outputs["privateIp"] for row in self.store.of(INTERFACE) if row.inputs["subnetId"] == subnet_id}
        net = IPv4Network(self._subnet(subnet_id).inputs["cidrBlock"])
        hosts = (str(net[number]) for number in range(RESERVED, net.num_addresses - 1))
        return (host for host in hosts if host not in taken)
