"""Inputs that cannot be updated in place: a change makes the engine replace the resource.

Each cloud has a table of them, by type of resource (`infra.registry.Cloud.replacement`). Other inputs may
force a replacement, too: only the engine's preview, which asks the provider, is complete.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from functools import cache
from typing import Any

from infra import registry

Row = Mapping[str, Any]


def replaces(row: Row, path: str) -> bool:
    """Whether a change of the input at `path` replaces the resource."""
    return path.replace("[", ".").partition(".")[0] in _inputs().get(row["type"], ())


@cache
def _inputs() -> Mapping[str, Collection[str]]:
    """The inputs of all clouds' resources, by type."""
    tables = [registry.cloud(name).replacement for name in registry.CLOUDS]
    return {kind: keys for table in tables if table for kind, keys in registry.part(table).items()}


def carried_along(rows: Sequence[Row], replaced: set[str]) -> dict[str, list[str]]:
    """The resources that are replaced because a dependency is: their URNs, and the inputs that refer to it.

    replaced: URNs to begin with. Transitive: with a VPC its subnets, and with those everything inside them.
    """
    carried: dict[str, list[str]] = {}
    while True:
        gone = replaced | carried.keys()
        more = {
            row["urn"]: inputs
            for row in rows
            if row["urn"] not in gone and (inputs := [key for key in _made_of(row, gone) if replaces(row, key)])
        }
        if not more:
            return carried
        carried |= more


def _made_of(row: Row, gone: Set[str]) -> list[str]:
    """The inputs that hold something of resources that will be gone."""
    return [key for key, urns in row["property_dependencies"].items() if not gone.isdisjoint(urns)]
