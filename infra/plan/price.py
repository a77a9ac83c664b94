"""What a plan costs."""

from __future__ import annotations

from collections.abc import Sequence

from infra.plan.plan import Cost, CostItem, GroupPlan


def local_cost(groups: Sequence[GroupPlan]) -> Cost:
    """Nodes on this computer: one free item a group."""
    items = tuple(CostItem(name=each.name, quantity=each.count, hourly=0.0, source="this computer") for each in groups)
    return Cost(currency="USD", hourly=0.0, hourly_max=0.0, per_gpu_hour=None, per_pflop_hour=None, items=items)
