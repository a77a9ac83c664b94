"""A plan as a picture of its topology: SVG, the same text for the same plan, in light and in dark."""

from __future__ import annotations

from infra.graph.picture import alicloud, aws
from infra.graph.picture.layout import drawn
from infra.graph.picture.scene import Scene, plain
from infra.plan.alicloud import AlicloudPlan
from infra.plan.aws import AwsPlan
from infra.plan.plan import Plan


def draw(plan: Plan) -> str:
    """The SVG document."""
    return drawn(_scene(plan))


def _scene(plan: Plan) -> Scene:
    match plan:
        case AwsPlan():
            return aws.scene(plan)
        case AlicloudPlan():
            return alicloud.scene(plan)
        case _:
            return plain(plan)


__all__ = ["draw"]
