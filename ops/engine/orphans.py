"""Orphaned resources: tagged with the stack's tags, but not in the Pulumi state; and their entries in the state."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol, TypeVar

from ops.engine import state_repair
from ops.engine.state_repair import PROVIDERS, Row, State

INSTANCE = "/instance"  # the ending of the kinds of machines, on every cloud


class TaggedResource(Protocol):
    """A resource with the stack's tags. kind: `<service>/<type of resource>`. names: its id and ARN."""

    @property
    def kind(self) -> str: ...
    @property
    def id(self) -> str: ...
    @property
    def names(self) -> Collection[str]: ...


class Machine(Protocol):
    """A machine of a cloud. made_by: the engine's id of its fleet or group. attached: ids of its disks and interfaces,
    which end with it."""

    @property
    def id(self) -> str: ...
    @property
    def made_by(self) -> str: ...
    @property
    def attached(self) -> Collection[str]: ...


Resource = TypeVar("Resource", bound=TaggedResource)


def of(resources: Sequence[Resource], machines: Sequence[Machine], known: Collection[str]) -> list[Resource]:
    """The resources that are not known. known: ids and ARNs of the state. A machine is also known by its fleet or
    group, and its disks and interfaces with it."""
    members = {
        machine.id for machine in machines if machine.id in known or (machine.made_by and machine.made_by in known)
    }
    known_parts = members | {part for machine in machines if machine.id in members for part in machine.attached}
    return [
        resource for resource in resources if resource.id not in known_parts and not set(resource.names) & set(known)
    ]


def claimed(
    state: State, orphans: Sequence[TaggedResource], ordered: Sequence[Row], stack: str, kinds: Mapping[str, str]
) -> State:
    """The state with each orphan of a type that the program has, under a name of its own.

    They are destroyed in the reverse order of the types in the program. Machines are left out: they are members of a
    fleet or group and are terminated by a call of their own. kinds: of the resource types.
    """
    types = list(dict.fromkeys(row["type"] for row in ordered if row["custom"]))
    provider = next((row for row in ordered if row["type"].startswith(PROVIDERS)), None)
    claimable = [
        (types.index(kind), kind, orphan)
        for orphan in orphans
        for kind in types
        if kinds.get(kind) == orphan.kind and not orphan.kind.endswith(INSTANCE)
    ]
    if provider is None or not claimable:
        return state
    rows, existing, earlier = [], {}, []
    for _, kind, orphan in sorted(claimable, key=lambda item: item[0]):
        urn = f"urn:pulumi:{stack}::gpufleet::{kind}::stray-{orphan.id.replace('::', '-')}"
        if orphan.id in {item.id for item in existing.values()}:
            continue  # a security group may be the default one, too
        row = {"urn": urn, "type": kind, "custom": True, "parent": "", "protect": False, "inputs": {}}
        rows.append({**row, "provider": provider["urn"], "dependencies": list(earlier)})
        existing[urn] = state_repair.ExistingResource(orphan.id)
        earlier.append(urn)
    return state_repair.completed(state, [*ordered, *rows], existing)
