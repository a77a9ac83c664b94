"""The engine's state, completed with what exists and it does not know: what a killed deployment left behind.

The engine writes a resource down only after the cloud has answered; killed in between, it forgets it and makes another
one. Pulumi's own ways, `refresh --import-pending-creates` and `import`, know neither what to ask for nor what depends
on what. Here the rendered program tells both, and the next refresh reads the rest from the cloud, or drops what is not
there after all.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = Mapping[str, Any]  # of the rendered plan: urn, type, name, parent, custom, inputs, dependencies, provider …
State = dict[str, Any]  # what `pulumi stack export` prints and `pulumi stack import` takes

PROVIDERS = "pulumi:providers:"
REFERENCE = re.compile(r"\$\{(?P<name>[^.}]+)\.[^}]+\}")
EMPTY: State = {"version": 3, "deployment": {}}
ENDS = ("endDate", "endTime")  # when a Capacity Block, and an elasticity assurance, has run out


@dataclass(frozen=True)
class Found:
    """A resource that exists: its id in the cloud, and what the state must hold beyond it.

    Without outputs the provider takes the id as that of an import, with them as that of a refresh.
    """

    id: str
    inputs: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, Any] = field(default_factory=dict)


def ids(state: State) -> dict[str, str]:
    """The ids of what the state knows, by URN; of a resource that is waiting for its replacement's end, the new one."""
    return {each["urn"]: each.get("id", "") for each in _resources(state) if not each.get("delete")}


def everything(state: State) -> set[str]:
    """Every id and ARN that the state knows, of resources that wait for their deletion too."""
    named = {each.get("id", "") for each in _resources(state)}
    return named | {each.get("outputs", {}).get(key, "") for each in _resources(state) for key in _arns(each["type"])}


def protected(state: State) -> list[str]:
    """What no `destroy` removes: type and id, and how long it is paid for."""
    kept = [each for each in _resources(state) if each.get("protect")]
    return [f"{each['type']} {each.get('id', '')}{_paid(each.get('outputs', {}))}" for each in kept]


def standing(state: State) -> list[str]:
    """What a `destroy` that failed has left in the cloud: type and id."""
    left = [each for each in _resources(state) if each["custom"] and not each["type"].startswith(PROVIDERS)]
    return [f"{each['type']} {each['id']}" for each in left if not each.get("protect")]


def unfinished(state: State) -> bool:
    """Whether a deployment ended in the middle of something."""
    return bool(state["deployment"].get("pending_operations"))


def completed(state: State, rows: Sequence[Row], found: Mapping[str, Found]) -> State:
    """The state with what was found, and with the components and the provider that it hangs on."""
    known = ids(state)
    wanted = set(found)
    for row in reversed(rows):
        if row["urn"] in wanted:
            wanted |= {row["parent"], row["provider"]} - {""}
    added = []
    for row in rows:
        if row["urn"] in wanted and row["urn"] not in known:
            entry = _entry(row, found.get(row["urn"]), known)
            known[row["urn"]] = entry.get("id", "")
            added.append(entry)
    deployment = state["deployment"]
    resources = [*_resources(state), *added]
    return {**state, "deployment": {**deployment, "resources": resources, "pending_operations": []}}


def owner(row: Row, key: str, known: Mapping[str, str]) -> str | None:
    """The id of the resource that an input refers to; None while it is not there. known: ids by URN."""
    reference = REFERENCE.fullmatch(str(row["inputs"].get(key)))
    ending = f"::{reference['name']}" if reference else ""
    return next((known.get(urn) for urn in row["dependencies"] if reference and urn.endswith(ending)), None)


def refreshed(row: Row, id_: str, name: str = "", made_up: str = "", **more: str) -> Found:
    """Read by its id alone. What no API tells is what the program says; a made-up name is marked as one.

    name: the property that the engine makes a name up for, which is `made_up`. more: what else the state must hold.
    """
    literal = {key: value for key, value in row["inputs"].items() if "${" not in json.dumps(value)}
    named = {name: made_up} if name and name not in row["inputs"] else {}
    inputs = {"__defaults": list(named), **named} if named else {}
    return Found(id_, inputs, {**literal, "id": id_, **named, **more})


def in_order(rows: Sequence[Row]) -> list[Row]:
    """The rows so that each stands behind its parent, its provider and all that it depends on."""
    by_urn, placed = {row["urn"]: row for row in rows}, {}

    def place(urn: str) -> None:
        if urn not in placed and urn in by_urn:
            row = by_urn[urn]
            for before in (row["parent"], row["provider"], *row["dependencies"]):
                place(before)
            placed[urn] = row

    for row in rows:
        place(row["urn"])
    return list(placed.values())


def _entry(row: Row, found: Found | None, known: Mapping[str, str]) -> dict[str, Any]:
    entry: dict[str, Any] = {"urn": row["urn"], "type": row["type"], "custom": row["custom"]}
    if row["parent"]:
        entry["parent"] = row["parent"]
    if row["type"].startswith(PROVIDERS):
        return {**entry, "id": str(uuid.uuid4()), "inputs": row["inputs"], "outputs": row["inputs"]}
    if found is None:
        return entry
    return {
        **entry,
        "id": found.id,
        "inputs": dict(found.inputs),
        "outputs": dict(found.outputs),
        "provider": f"{row['provider']}::{known[row['provider']]}",
        "dependencies": [urn for urn in row["dependencies"] if urn in known],
        "protect": row["protect"],
    }


def _paid(outputs: Mapping[str, Any]) -> str:
    return "".join(f" (paid until {outputs[key]})" for key in ENDS if outputs.get(key))


def _arns(type_: str) -> tuple[str, str]:
    """What a type calls its own ARN: `arn`, or in newer ones the type itself before it."""
    return "arn", f"{type_.rpartition('/')[2].partition(':')[0]}Arn"


def _resources(state: State) -> list[dict[str, Any]]:
    return state["deployment"].get("resources") or []
