"""A plan as a picture of its topology: SVG, the same text for the same plan, in light and in dark."""

from __future__ import annotations

from infra import registry
from infra.graph.picture.layout import drawn
from infra.graph.picture.scene import Scene, plain
from infra.plan.model import Plan


def draw(plan: Plan) -> str:
    """The SVG document."""
    return drawn(_scene(plan))


def _scene(plan: Plan) -> Scene:
    reference = registry.cloud(plan.cloud).picture
    scene: Scene = registry.part(reference)(plan) if reference else plain(plan)
    return scene


__all__ = ["draw"]
