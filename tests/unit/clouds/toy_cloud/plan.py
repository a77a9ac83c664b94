"""From boxes in a stack file to boxes in a plan."""

from __future__ import annotations

from dataclasses import dataclass

from infra.plan.model import AccessPlan, Cost, CostItem, GroupPlan, NetworkPlan, Plan
from toy_cloud.spec import ToySpec


@dataclass(frozen=True, kw_only=True)
class ToyPlan(Plan):
    """Boxes, with or without lids."""

    lids: bool


def decide(stack: str, spec: ToySpec) -> ToyPlan:
    """The plan of a stack of boxes."""
    boxes = GroupPlan(name=spec.name, count=spec.boxes, gpu=None, gpus_per_node=0, fabric="tcp", nodes=())
    item = CostItem(name=spec.name, quantity=spec.boxes, hourly=0.5 * spec.boxes, source="the toy shop")
    return ToyPlan(
        stack=stack,
        cloud=spec.cloud,
        region=None,
        network=NetworkPlan(cidr="10.0.0.0/24", gateway=None),
        access=AccessPlan(public_keys=()),
        groups=(boxes,),
        storage=(),
        cost=Cost(
            currency="USD",
            hourly=item.hourly or 0.0,
            hourly_max=item.hourly or 0.0,
            per_gpu_hour=None,
            per_pflop_hour=None,
            items=(item,),
        ),
        findings=(),
        lids=spec.lids,
    )
