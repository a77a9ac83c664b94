"""Rules about names that tools read."""

from __future__ import annotations

from collections.abc import Iterator

from infra.checks.rule import Violation, rule
from infra.plan.model import Plan
from infra.spec.cluster import Cluster

# Ansible's two default groups ("How to build your inventory"), and the one of nodes that have proven themselves.
OF_EVERY_INVENTORY = ("all", "ungrouped", "ready")


@rule("group-names-are-free-in-the-inventory", Plan)
def group_names_are_free_in_the_inventory(_: Cluster, plan: Plan) -> Iterator[Violation]:
    """An inventory cannot tell a group from a host of the same name, nor keep nodes in one that it has of itself."""
    nodes = {node.name for node in plan.nodes}
    for i, group in enumerate(plan.groups):
        if group.name in OF_EVERY_INVENTORY:
            yield f"cluster.nodes[{i}].name", f"'{group.name}' is a group that every inventory has already"
        if group.name in nodes:
            yield f"cluster.nodes[{i}].name", f"'{group.name}' is also a node's name; an inventory needs them to differ"
