"""Rules about names that tools read."""

from __future__ import annotations

from collections.abc import Iterator

from infra.plan.plan import Plan
from infra.plan.rules.registry import Violation, rule
from infra.spec.cluster import Cluster

ANSIBLE_OWN = ("all", "ungrouped")  # Ansible, "How to build your inventory": the two default groups


@rule("group-names-are-free-in-the-inventory", Plan)
def group_names_are_free_in_the_inventory(_: Cluster, plan: Plan) -> Iterator[Violation]:
    """An inventory cannot tell a group from a host of the same name, nor redefine its two default groups."""
    nodes = {node.name for node in plan.nodes}
    for i, group in enumerate(plan.groups):
        if group.name in ANSIBLE_OWN:
            yield f"cluster.nodes[{i}].name", f"'{group.name}' is a group that every Ansible inventory has already"
        if group.name in nodes:
            yield f"cluster.nodes[{i}].name", f"'{group.name}' is also a node's name; an inventory needs them to differ"
