"""Rules about groups whose nodes come and go by the load of their GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from infra.checks.rule import Violation, rule
from infra.plan.cloud_model import CloudPlan
from infra.spec.cloud import Zoned


@rule("nodes-come-and-go-by-a-load", CloudPlan)
def nodes_come_and_go_by_a_load(_: Zoned, plan: CloudPlan) -> Iterator[Violation]:
    """DCGM shows the load of whole GPUs (NVIDIA Multi-Instance GPU User Guide: no utilization of a GPU in slices)."""
    for i, group in enumerate(plan.groups):
        if group.elastic and (group.gpu is None or group.mig):
            lack = "a GPU in slices tells no load" if group.mig else f"{group.type} has no GPU to tell its load"
            yield f"cluster.nodes[{i}].max", f"{lack}, which would add and remove nodes; give `count`"


@rule("a-group-never-empties", CloudPlan)
def a_group_never_empties(_: Zoned, plan: CloudPlan) -> Iterator[Violation]:
    """Target tracking adds nothing while its metric has no data (EC2 Auto Scaling User Guide, Target tracking); on
    Alibaba Cloud too the metric is the mean over the group's own nodes (Auto Scaling User Guide, system monitoring)."""
    for i, group in enumerate(plan.groups):
        if group.elastic and group.count == 0:
            yield f"cluster.nodes[{i}].min", "0: once empty, nothing tells the group to grow again; give 1 or more"
