"""Whatever a change of a stack file asks for, a review of it shows a decision that differs."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from graph_projects import REPOSITORY, shipped
from pydantic import BaseModel, ValidationError

from infra import registry
from infra.evaluate import decide
from infra.graph.diff.decisions import decision_changes
from infra.graph.document import decisions
from infra.spec import StackFile

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMQ595exV83f5DxJloVWhMgCQcj8SonhRhYbxRGzLwwA"
ABSENT = object()
SAME = {  # words for one decision: of what the type has anyhow, and of the default
    ("fabric", ABSENT),
    ("gpu_load", ABSENT),
}
Path_ = tuple[str | int, ...]


def places(value: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    for key, item in value.items() if isinstance(value, dict) else enumerate(value[:2]):
        yield (*path, key), item
        if isinstance(item, dict | list):
            yield from places(item, (*path, key))


def others(value: Any) -> list[Any]:
    """Other values that may be right in the same place, and none."""
    match value:
        case bool():
            return [not value, ABSENT]
        case int():
            return [value + 1, value - 1, value * 2, ABSENT]
        case float():
            return [value * 1.5, value / 2, ABSENT]
        case str():
            return [f"{value}x", f"{value[:-1]}7", f"{value[:-1]}b", KEY, ABSENT]
    return [ABSENT]


def changed(original: dict[str, Any], path: Path_, value: Any) -> dict[str, Any]:
    cluster = copy.deepcopy(original)
    inside: Any = cluster
    for key in path[:-1]:
        inside = inside[key]
    if value is ABSENT:
        del inside[path[-1]]
    else:
        inside[path[-1]] = value
    return cluster


def loaded(cluster: dict[str, Any]) -> StackFile | None:
    """The stack file of this cluster, as it is once it has been read: to read it takes most of the time."""
    cloud = cluster.get("cloud")
    if cloud not in registry.CLOUDS:
        return None
    kind: type[BaseModel] = registry.part(registry.cloud(cloud).spec)
    try:
        return StackFile("x", Path("Pulumi.x.yaml"), cast(Any, kind.model_validate(cluster)), {"": 1})
    except ValidationError:
        return None


def document(file: StackFile) -> dict[str, Any]:
    plan = decide(file)
    commands = [command.to_json() for command in plan.commands]
    return json.loads(json.dumps({"commands": commands, "decisions": decisions(plan, file.spec.budget)}))


@pytest.mark.parametrize("stack", shipped())
def test_every_change_of_a_key_is_a_decision_that_differs(stack: str) -> None:
    file = REPOSITORY / "stacks" / f"Pulumi.{stack}.yaml"
    cluster = yaml.safe_load(file.read_text())["config"]["gpufleet:cluster"]
    first = loaded(cluster)
    assert first is not None
    before, tried, unseen = document(first), 0, []

    for path, value in places(cluster):
        for other in others(value):
            file_ = loaded(changed(cluster, path, other))
            if file_ is None or file_.spec == first.spec or (path[-1], other) in SAME:
                continue
            tried += 1
            if not decision_changes(before, document(file_), with_boot=False):
                unseen.append((path, other))

    assert unseen == []
    assert tried > 5
