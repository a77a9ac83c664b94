"""Completes the engine's state with existing resources that it lacks after a killed deployment.

The engine records a resource only after the cloud has answered; killed in between, it loses it and creates another one.
Pulumi's `refresh --import-pending-creates` and `import` need ids and dependencies from a person. Here the rendered
program has both, and the next refresh reads the rest from the cloud, or drops what does not exist after all.
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
ENDS = ("endDate", "endTime")  # when a Capacity Block, and an elasticity assurance, ends


@dataclass(frozen=True)
class ExistingResource:
    """A resource that exists: its id in the cloud, and what else its entry in the state needs.

    Without outputs the provider treats the id as one to import, with them as one to refresh.
    """

    id: str
    inputs: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, Any] = field(default_factory=dict)


def ids(state: State) -> dict[str, str]:
    """The ids of the state's resources, by URN; during a replacement, the new one's."""
    return {resource["urn"]: resource.get("id", "") for resource in _resources(state) if not resource.get("delete")}


def known_names(state: State) -> set[str]:
    """Every id and ARN in the state, also of resources that are pending deletion."""
    named = {resource.get("id", "") for resource in _resources(state)}
    return named | {
        resource.get("outputs", {}).get(key, "") for resource in _resources(state) for key in _arns(resource["type"])
    }


def protected(state: State) -> list[str]:
    """What `destroy` does not delete: type and id, and until when it is paid for."""
    resources = [resource for resource in _resources(state) if resource.get("protect")]
    return [
        f"{resource['type']} {resource.get('id', '')}{_paid(resource.get('outputs', {}))}" for resource in resources
    ]


def standing(state: State) -> list[str]:
    """What a failed `destroy` has left in the cloud: type and id."""
    resources = [
        resource for resource in _resources(state) if resource["custom"] and not resource["type"].startswith(PROVIDERS)
    ]
    return [f"{resource['type']} {resource['id']}" for resource in resources if not resource.get("protect")]


def unfinished(state: State) -> bool:
    """Whether a deployment ended during an operation."""
    return bool(state["deployment"].get("pending_operations"))


def completed(state: State, rows: Sequence[Row], existing: Mapping[str, ExistingResource]) -> State:
    """The state with these resources, and with the components and the provider that they depend on."""
    known = ids(state)
    needed = set(existing)
    for row in reversed(rows):
        if row["urn"] in needed:
            needed |= {row["parent"], row["provider"]} - {""}
    added = []
    for row in rows:
        if row["urn"] in needed and row["urn"] not in known:
            entry = _entry(row, existing.get(row["urn"]), known)
            known[row["urn"]] = entry.get("id", "")
            added.append(entry)
    deployment = state["deployment"]
    resources = [*_resources(state), *added]
    return {**state, "deployment": {**deployment, "resources": resources, "pending_operations": []}}


def owner(row: Row, key: str, known: Mapping[str, str]) -> str | None:
    """The id of the resource that an input refers to; None while it does not exist. known: ids by URN."""
    reference = REFERENCE.fullmatch(str(row["inputs"].get(key)))
    ending = f"::{reference['name']}" if reference else ""
    return next((known.get(urn) for urn in row["dependencies"] if reference and urn.endswith(ending)), None)


def refreshed(row: Row, id_: str, name: str = "", generated_name: str = "", **more: str) -> ExistingResource:
    """A resource to be read by its id alone. What no API returns is taken from the program; a generated name is marked
    as one.

    name: the property for which the engine generates a name, `generated_name`. more: further outputs.
    """
    literal = {key: value for key, value in row["inputs"].items() if "${" not in json.dumps(value)}
    generated = {name: generated_name} if name and name not in row["inputs"] else {}
    inputs = {"__defaults": list(generated), **generated} if generated else {}
    return ExistingResource(id_, inputs, {**literal, "id": id_, **generated, **more})


def in_order(rows: Sequence[Row]) -> list[Row]:
    """The rows sorted so that each comes after its parent, its provider and its dependencies."""
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


def _entry(row: Row, existing: ExistingResource | None, known: Mapping[str, str]) -> dict[str, Any]:
    entry: dict[str, Any] = {"urn": row["urn"], "type": row["type"], "custom": row["custom"]}
    if row["parent"]:
        entry["parent"] = row["parent"]
    if row["type"].startswith(PROVIDERS):
        return {**entry, "id": str(uuid.uuid4()), "inputs": row["inputs"], "outputs": row["inputs"]}
    if existing is None:
        return entry
    return {
        **entry,
        "id": existing.id,
        "inputs": dict(existing.inputs),
        "outputs": dict(existing.outputs),
        "provider": f"{row['provider']}::{known[row['provider']]}",
        "dependencies": [urn for urn in row["dependencies"] if urn in known],
        "protect": row["protect"],
    }


def _paid(outputs: Mapping[str, Any]) -> str:
    return "".join(f" (paid until {outputs[key]})" for key in ENDS if outputs.get(key))


def _arns(type_: str) -> tuple[str, str]:
    """The names of the output that holds a type's ARN: `arn`, or in newer ones with the type before it."""
    return "arn", f"{type_.rpartition('/')[2].partition(':')[0]}Arn"


def _resources(state: State) -> list[dict[str, Any]]:
    return state["deployment"].get("resources") or []
