"""What the provider asks of Alibaba Cloud. A group's machines are rows of their own, made by the group."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import replace
from ipaddress import ip_network
from itertools import cycle, islice
from typing import Any

from cloud_provider.kinds import Kind, RefusedError, filled, leaves, taken
from cloud_provider.store import Row, Store

from alicloud_cloud import refusals
from alicloud_cloud.kinds import ACCOUNT, CONFIGURATION, INSTANCE, KINDS, MIX, NODE_POOL, SCALING_GROUP, VSWITCH

# What a machine of a group holds on to, by the words of an instance; those of a template, a configuration or a pool.
BORN_WITH = {
    "instanceType": ("instanceType",),
    "keyName": ("keyName", "keyPairName"),
    "roleName": ("roleName", "ramRoleName"),
    "securityGroups": ("securityGroupIds",),
    "userData": ("userData",),
}


class Cloud:
    """The account, as seen through one region."""

    def __init__(self, store: Store, region: str) -> None:
        self.store, self.region = store, region

    def create(
        self, type_: str, urn: str, inputs: Mapping[str, Any], tags: Mapping[str, str], *, starved: bool = False
    ) -> Row:
        """Makes a resource, with the machines that it starts; starved: there are none to give. Raises RefusedError."""
        kind = KINDS[type_]
        with self.store.change():
            taken(self.store, type_, kind, inputs, self.region)
            refusals.check(self.store, type_, inputs)
            if starved and type_ == INSTANCE:
                raise RefusedError("OperationDenied.NoStock", f"{inputs['instanceType']} is sold out")
            row = self._made(type_, kind, inputs)
            row = replace(row, urn=urn, tags=dict(tags))
            self.store.put([row])
            if not starved:
                self._start(row)
        return row

    def find(self, type_: str, id_: str) -> Row | None:
        """The resource of an id, or None."""
        return next(iter(self.store.rows("type = ? and id = ? and state = ''", type_, id_)), None)

    def imported(self, type_: str, name: str) -> Row | None:
        """By nothing but its id."""
        return self.find(type_, name)

    def update(self, type_: str, id_: str, inputs: Mapping[str, Any], tags: Mapping[str, str]) -> Row:
        """Changes a resource. Raises RefusedError when it is not there."""
        with self.store.change():
            row = self.find(type_, id_)
            if row is None:
                raise RefusedError("NotFound", f"{id_} does not exist")
            row = replace(row, inputs=dict(inputs), tags=dict(tags))
            self.store.put([row])
        return row

    def delete(self, type_: str, id_: str) -> None:
        """Deletes a resource with what is part of it; one that is gone already is no fault. Raises RefusedError."""
        with self.store.change():
            row, kind = self.find(type_, id_), KINDS[type_]
            if row is None:
                return
            going = [row, *self._parts(row)]
            named_by_us = "{hex}" in kind.id and not kind.part_of and not kind.free
            if named_by_us and (users := [*self._users(row, going)]):
                raise RefusedError("DependencyViolation", f"{id_} is in use by {', '.join(users[:4])}")
            self.store.remove(going)
            if kind.ghost:
                self.store.put([replace(row, state=kind.ghost)])

    def _made(self, type_: str, kind: Kind, inputs: Mapping[str, Any]) -> Row:
        fixed = {"account": ACCOUNT, "region": self.region, "hex": secrets.token_hex(8)}
        if type_ == INSTANCE:
            fixed["address"] = self._address(inputs.get("vswitchId", ""))
        values: dict[str, Any] = {**inputs, **fixed, "byte": secrets.randbelow(254) + 1}
        values["id"] = filled(kind.id, values)
        outputs = {name: filled(value, values) for name, value in kind.outputs.items() if inputs.get(name) is None}
        arn = filled(kind.arn, values)
        return Row(type=type_, id=values["id"], arn=arn, region=self.region, inputs=dict(inputs), outputs=outputs)

    def _address(self, vswitch: str) -> str:
        """The next one of a vSwitch, of which the last three and the first are the cloud's own (VPC User Guide)."""
        rows = self.store.rows("type = ? and id = ?", VSWITCH, vswitch)
        if not rows:
            return ""
        net = ip_network(rows[0].inputs["cidrBlock"])
        taken = {machine.outputs["primaryIpAddress"] for machine in self.store.of(INSTANCE)}
        free = (str(net[n]) for n in range(1, net.num_addresses - 3))
        address = next((each for each in free if each not in taken), None)
        if address is None:
            raise RefusedError("InvalidVSwitchId.IpNotEnough", f"{vswitch} has no address left")
        return address

    def _start(self, row: Row) -> None:
        """The machines of a group, with the tags that its configuration or its launch template has for them."""
        group = row
        if row.type == CONFIGURATION:
            (group,) = self.store.rows("id = ?", row.inputs["scalingGroupId"])
        elif row.type not in {MIX, NODE_POOL} and not row.inputs.get("launchTemplateId"):
            return
        counts = {
            SCALING_GROUP: group.inputs.get("desiredCapacity") or group.inputs.get("minSize"),
            MIX: group.inputs.get("totalTargetCapacity"),
            NODE_POOL: group.inputs.get("desiredSize"),
        }
        templates = self.store.rows("id = ?", row.inputs.get("launchTemplateId") or "")
        source = templates[0].inputs if templates else row.inputs
        told = {name: value for name, words in BORN_WITH.items() for word in words if (value := source.get(word))}
        places = group.inputs.get("vswitchIds") or [
            each["vswitchId"] for each in group.inputs.get("launchTemplateConfigs", ())
        ]
        for vswitch in islice(cycle(places or [""]), int(counts[group.type] or 0)):
            machine = self._made(INSTANCE, KINDS[INSTANCE], {**told, **({"vswitchId": vswitch} if vswitch else {})})
            self.store.put([replace(machine, maker=group.id, tags=source.get("tags") or row.tags)])

    def _parts(self, row: Row) -> Iterator[Row]:
        """What goes along. A mix of types leaves its machines behind if it was not told otherwise."""
        if row.type != MIX or row.inputs.get("terminateInstances"):
            yield from self.store.rows("maker = ?", row.id)
        if KINDS[row.type].part_of:  # a bucket's settings have its name for an id, and no parts
            return
        for other in self.store.rows("instr(inputs, ?)", row.id):
            part_of = KINDS[other.type].part_of
            if part_of and other.inputs.get(part_of) == row.id:
                yield other
                yield from self._parts(other)

    def _users(self, row: Row, going: list[Row]) -> Iterator[str]:
        """What names a resource by its id, beside what goes with it."""
        leaving = {(other.type, other.id) for other in going}
        for other in self.store.rows("instr(inputs, ?) and state = ''", json.dumps(row.id)):
            if (other.type, other.id) not in leaving and row.id in leaves(other.inputs):
                yield other.id
