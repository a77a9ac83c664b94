"""A plan as a picture of its topology: SVG, the same text for the same plan, in light and in dark."""

from __future__ import annotations

from infra.graph.picture.layout import drawn
from infra.graph.picture.scene import of
from infra.plan.plan import Plan


def draw(plan: Plan) -> str:
    """The SVG document."""
    return drawn(of(plan))


__all__ = ["draw"]
