"""What carries the stack's tags and belongs to nothing that the engine knows, and how the engine is made to know it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol, TypeVar

from ops.engine import state_repair
from ops.engine.state_repair import PROVIDERS, Row, State

INSTANCE = "/instance"  # how the kinds of machines end, on every cloud


class Thing(Protocol):
    """Something with the stack's tags. kind: `<service>/<type of resource>`. names: by which a state knows it."""

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


Found = TypeVar("Found", bound=Thing)


def of(things: Sequence[Found], machines: Sequence[Machine], known: Collection[str]) -> list[Found]:
    """known: ids and ARNs. A machine is known by its fleet or group too, and brings its disks and interfaces."""
    members = {each.id for each in machines if each.id in known or (each.made_by and each.made_by in known)}
    theirs = members | {part for each in machines if each.id in members for part in each.attached}
    return [each for each in things if each.id not in theirs and not set(each.names) & set(known)]


def claimed(
    state: State, strays: Sequence[Thing], ordered: Sequence[Row], stack: str, kinds: Mapping[str, str]
) -> State:
    """The state with each stray of a type that the program has, under a name of its own.

    What was made first goes last, by the order of the types in the program. Machines are left out: they are members
    of something and end by a call of their own. kinds: of the resource types.
    """
    types = list(dict.fromkeys(row["type"] for row in ordered if row["custom"]))
    provider = next((row for row in ordered if row["type"].startswith(PROVIDERS)), None)
    ours = [
        (types.index(kind), kind, each)
        for each in strays
        for kind in types
        if kinds.get(kind) == each.kind and not each.kind.endswith(INSTANCE)
    ]
    if provider is None or not ours:
        return state
    rows, found, before = [], {}, []
    for _, kind, each in sorted(ours, key=lambda one: one[0]):
        urn = f"urn:pulumi:{stack}::gpufleet::{kind}::stray-{each.id.replace('::', '-')}"
        if each.id in {one.id for one in found.values()}:
            continue  # a security group may be the default one too
        row = {"urn": urn, "type": kind, "custom": True, "parent": "", "protect": False, "inputs": {}}
        rows.append({**row, "provider": provider["urn"], "dependencies": list(before)})
        found[urn] = state_repair.Found(each.id)
        before.append(urn)
    return state_repair.completed(state, [*ordered, *rows], found)
