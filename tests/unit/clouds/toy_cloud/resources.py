"""How boxes are declared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pulumi import ComponentResource, CustomResource, Output, ProviderResource, ResourceOptions

from toy_cloud.plan import ToyPlan


class Boxes(ComponentResource):
    """All boxes of a plan."""

    def __init__(self, name: str, plan: ToyPlan, opts: ResourceOptions) -> None:
        super().__init__("gpufleet:toy:Boxes", name, {}, opts)
        child = ResourceOptions(parent=self)
        for i in range(plan.groups[0].count):
            CustomResource("toy:index:Box", f"{name}-{i}", {"lid": plan.lids}, child)
        self.register_outputs({})


def declare(plan: ToyPlan, root: Path) -> Output[dict[str, Any]]:
    """Declares the boxes; there is nothing to hand over."""
    provider = ProviderResource("toy", "toy", {})
    Boxes(plan.stack, plan, ResourceOptions(providers=[provider]))
    return Output.from_input({"stack": plan.stack})
