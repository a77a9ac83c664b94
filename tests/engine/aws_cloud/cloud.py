"""What the provider asks of AWS: make, look at, change and delete one resource. Rows in, rows out."""

from __future__ import annotations

import json
import secrets
import uuid
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from cloud_provider.kinds import Kind, RefusedError, filled, leaves
from cloud_provider.store import Row, Store

from aws_cloud import machines, refusals
from aws_cloud.kinds import ACCOUNT
from aws_cloud.kinds_ec2 import EC2, FLEET, INSTANCE, TEMPLATE
from aws_cloud.kinds_services import BUCKET, NODE_GROUP, OBJECT, SCALING_GROUP, SERVICES

KINDS: Mapping[str, Kind] = EC2 | SERVICES
STARTERS = {FLEET, SCALING_GROUP, NODE_GROUP}


class Cloud:
    """The account, as seen through one region."""

    def __init__(self, store: Store, region: str) -> None:
        self.store, self.region = store, region

    def create(
        self, type_: str, urn: str, inputs: Mapping[str, Any], tags: Mapping[str, str], *, starved: bool = False
    ) -> Row:
        """Makes a resource, with the machines that it starts; starved: AWS has none to give. Raises RefusedError."""
        kind = KINDS[type_]
        region = kind.region or inputs.get("region") or self.region
        with self.store.change():
            refusals.check(self.store, type_, kind, inputs, region)
            values = self._values(type_, inputs, region)
            values["id"] = filled(kind.id, values)
            made = {name: filled(value, values) for name, value in kind.outputs.items() if inputs.get(name) is None}
            row = Row(
                type=type_,
                id=values["id"],
                urn=urn,
                arn=filled(kind.arn, values),
                region=region,
                inputs=dict(inputs),
                outputs={**made, "region": region},
                tags=dict(tags),
            )
            if type_ == INSTANCE:
                if starved:
                    raise RefusedError(
                        "InsufficientInstanceCapacity", f"There is no capacity of {region} to start {urn}"
                    )
                row, *parts = machines.alone(self.store, row)
                self.store.put([row, *parts])
            else:
                self.store.put([row])
                if type_ in STARTERS and not starved:
                    row = machines.filled_up(self.store, row)
                    self.store.put([row])
        return row

    def find(self, type_: str, id_: str) -> Row | None:
        """The resource of an id, or None."""
        return next((row for row in self.store.rows("type = ? and id = ?", type_, id_) if not gone(row)), None)

    def imported(self, type_: str, name: str) -> Row | None:
        """The resource by its id or by what its type is imported by, or None."""
        for row in self.store.of(type_):
            known = {row.id, *(filled(template, _Named(row)) for template in KINDS[type_].imports)}
            if name in known and not gone(row):
                return row
        return None

    def update(self, type_: str, id_: str, inputs: Mapping[str, Any], tags: Mapping[str, str]) -> Row:
        """Changes a resource. Raises RefusedError when it is not there."""
        with self.store.change():
            row = self.find(type_, id_)
            if row is None:
                raise RefusedError("NotFound", f"{id_} does not exist")
            if type_ == FLEET and not machines.refills(row) and _modified(row.inputs, inputs):
                raise RefusedError("UnsupportedOperation", "You can only modify an EC2 Fleet request of type maintain")
            row = replace(row, inputs=dict(inputs), tags=dict(tags))
            if type_ == TEMPLATE:
                row = replace(row, outputs={**row.outputs, **_next_version(row)})
            if type_ in STARTERS and machines.refills(row):
                row = machines.filled_up(self.store, row)
            self.store.put([row])
        return row

    def delete(self, type_: str, id_: str) -> None:
        """Deletes a resource with what is part of it; one that is gone already is no fault. Raises RefusedError."""
        with self.store.change():
            row, kind = self.find(type_, id_), KINDS[type_]
            if row is None:
                return
            going = [row, *self._parts(row)]
            users = [] if kind.free or kind.part_of else [*users_of(self.store, row, going)]
            if users:
                raise RefusedError("DependencyViolation", f"{id_} has a dependent object: {', '.join(users[:4])}")
            self._end(row, going, kind)

    def terminate(self, rows: list[Row]) -> None:
        """Ends machines; who refills starts others."""
        with self.store.change():
            machines.terminate(self.store, rows)
            for maker in {row.maker for row in rows}:
                for row in self.store.rows("id = ? and state = ''", maker):
                    if machines.refills(row):
                        self.store.put([machines.filled_up(self.store, row)])

    def _parts(self, row: Row) -> Iterator[Row]:
        if KINDS[row.type].part_of:  # a part has none, and a bucket's setting has the bucket's id
            return
        for other in self.store.rows("instr(inputs, ?)", row.id):
            kind = KINDS[other.type]
            if kind.part_of and other.inputs.get(kind.part_of) in {row.id, row.arn}:
                if row.type == BUCKET and other.type == OBJECT and not row.inputs.get("forceDestroy"):
                    raise RefusedError("BucketNotEmpty", f"{row.id} still holds {other.inputs['key']}")
                yield other

    def _end(self, row: Row, going: list[Row], kind: Kind) -> None:
        if row.type == INSTANCE:
            machines.terminate(self.store, [row])
        elif row.type in STARTERS:
            if row.inputs.get("terminateInstances", row.type != FLEET):
                machines.terminate(self.store, machines.of(self.store, row))
            elif not machines.refills(row):
                raise RefusedError(
                    "UnsupportedOperation", f"{row.id} is of type instant: its instances must end with it"
                )
        if kind.ghost:
            self.store.remove(going[1:])
            if row.type != INSTANCE:
                self.store.put([replace(row, state=kind.ghost)])
        else:
            self.store.remove(going)

    def _values(self, type_: str, inputs: Mapping[str, Any], region: str) -> dict[str, Any]:
        """The words of the templates."""
        own = uuid.uuid4()
        return {
            **inputs,
            "account": ACCOUNT,
            "region": region,
            "uuid": str(own),
            "hex": own.hex[:16],
            "HEX": own.hex[:17].upper(),
            "byte": secrets.randbelow(254) + 1,
            "mount": own.hex[:8],
            "vpc": str(inputs.get("vpcId", "")).removeprefix("vpc-0"),
            "crc": zlib.crc32(str(inputs.get("destinationCidrBlock", "")).encode()),
        }


class _Named(dict[str, Any]):
    """The words of a row that is there already; what it lacks reads as nothing."""

    def __init__(self, row: Row) -> None:
        super().__init__({**row.properties, "id": row.id})

    def __missing__(self, key: str) -> str:
        return ""


def _modified(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether more than tags has changed."""
    return {**old, "tags": None} != {**new, "tags": None}


def _next_version(template: Row) -> dict[str, int]:
    version = template.outputs["latestVersion"] + 1
    default = version if template.inputs.get("updateDefaultVersion") else template.outputs["defaultVersion"]
    return {"latestVersion": version, "defaultVersion": default}


def gone(row: Row) -> bool:
    """Whether AWS merely goes on showing it."""
    return row.state != "" and row.state == KINDS[row.type].ghost


def users_of(store: Store, row: Row, going: list[Row]) -> Iterator[str]:
    """What names a resource by its id or ARN, beside what goes with it."""
    names = {name for name in (row.id, row.outputs.get("arn")) if name}
    leaving = {(other.type, other.id) for other in going}
    for other in store.rows("instr(inputs, ?) or instr(inputs, ?)", json.dumps(row.id), json.dumps(row.arn)):
        if (other.type, other.id) not in leaving and not gone(other) and names & set(leaves(other.inputs)):
            yield other.id
