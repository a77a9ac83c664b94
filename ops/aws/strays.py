"""What carries the stack's tags and belongs to nothing that the engine knows, and how the engine is made to know it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ops import recovery
from ops.aws.kinds import TAGGED
from ops.aws.tagged import Instance, Thing
from ops.recovery import PROVIDERS, Row, State

KEPT = "ec2/capacity-reservation"  # a block is paid for up front and cannot be given back: it ends by itself


def of(things: Sequence[Thing], instances: Sequence[Instance], known: Collection[str]) -> list[Thing]:
    """known: ids and ARNs. An instance is known by its fleet or group too, and brings its disks and interfaces."""
    members = {each.id for each in instances if each.id in known or (each.made_by and each.made_by in known)}
    theirs = members | {part for each in instances if each.id in members for part in each.attached}
    ours = [each for each in things if each.kind != KEPT and each.id not in theirs]
    return [each for each in ours if each.id not in known and each.arn.text not in known]


def claimed(state: State, strays: Sequence[Thing], ordered: Sequence[Row], stack: str) -> State:
    """The state with each stray of a type that the program has, under a name of its own.

    What was made first goes last, by the order of the types in the program. Instances are left out: they are members
    of something and end by a call of their own.
    """
    types = list(dict.fromkeys(row["type"] for row in ordered if row["custom"]))
    provider = next((row for row in ordered if row["type"].startswith(PROVIDERS)), None)
    ours = [
        (types.index(kind), kind, each)
        for each in strays
        for kind in types
        if TAGGED.get(kind) == each.kind != "ec2/instance"
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
        found[urn] = recovery.Found(each.id)
        before.append(urn)
    return recovery.completed(state, [*ordered, *rows], found)
