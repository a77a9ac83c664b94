"""How a plan of boxes reads and looks."""

from __future__ import annotations

from dataclasses import replace

from infra.graph.picture.scene import Scene, plain
from infra.plan.model import GroupPlan
from infra.plan.summary import Summary
from toy_cloud.plan import ToyPlan


class ToySummary(Summary[ToyPlan, GroupPlan]):
    """Says where the boxes are."""

    @property
    def location(self) -> str:
        return "a shelf"


def scene(plan: ToyPlan) -> Scene:
    """Boxes on their shelf."""
    return replace(plain(plan), network="the shelf")
