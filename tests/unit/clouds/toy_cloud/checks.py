"""Checks of a plan of boxes."""

from __future__ import annotations

from collections.abc import Iterator

from infra.checks.rule import Violation, rule
from toy_cloud.plan import ToyPlan
from toy_cloud.spec import ToySpec

MOST_BOXES = 3


@rule("boxes-fit-the-shelf", ToyPlan)
def boxes_fit_the_shelf(spec: ToySpec, _: ToyPlan) -> Iterator[Violation]:
    """A shelf holds three boxes."""
    if spec.boxes > MOST_BOXES:
        yield "cluster.boxes", f"{spec.boxes} is more than the shelf holds, {MOST_BOXES}"
