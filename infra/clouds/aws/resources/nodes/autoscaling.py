"""Nodes that come and go with the load of their GPUs: a scaling group with target tracking.

Source: EC2 Auto Scaling User Guide, "Auto Scaling groups with multiple instance types and purchase options" (a template
with market options is refused there) and "Target tracking scaling policies".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pulumi import Input, ResourceOptions
from pulumi_aws import autoscaling

from infra.clouds.aws.plan.capacity import CapacityBlock, Elastic, Market, Reservation, Spot
from infra.clouds.aws.plan.model import AwsGroupPlan
from infra.clouds.aws.resources.nodes.launch_template import NEWEST, dollars
from infra.clouds.tags import LOGICAL_NAME

if TYPE_CHECKING:
    from pulumi_aws.autoscaling import (
        GroupMixedInstancesPolicyArgsDict,
        GroupMixedInstancesPolicyInstancesDistributionArgsDict,
    )


def scaling_group(
    name: str,
    plan: AwsGroupPlan,
    elastic: Elastic,
    template_id: Input[str],
    subnets: Sequence[Input[str]],
    tags: Mapping[str, str],
    opts: ResourceOptions,
) -> autoscaling.Group:
    """The group and its policy. How many nodes it has is its own affair between `least` and `most`: not an input."""
    own = {**tags, LOGICAL_NAME: name}  # in a form of its own, which neither the provider's tags nor ours reach
    reserved = isinstance(plan.market, Reservation | CapacityBlock)
    group = autoscaling.Group(
        name,
        min_size=elastic.least,
        max_size=elastic.most,
        vpc_zone_identifiers=list(subnets),
        launch_template={"id": template_id, "version": NEWEST} if reserved else None,
        mixed_instances_policy=None if reserved else _mixed(plan, elastic, template_id),
        capacity_rebalance=False,
        health_check_type="EC2",
        default_instance_warmup=elastic.warmup_seconds,
        tags=[{"key": key, "value": value, "propagate_at_launch": False} for key, value in sorted(own.items())],
        opts=opts,
    )
    autoscaling.Policy(
        f"{name}-by-gpu-load",
        autoscaling_group_name=group.name,
        policy_type="TargetTrackingScaling",
        estimated_instance_warmup=elastic.warmup_seconds,
        target_tracking_configuration={
            "target_value": elastic.gpu_load_percent,
            "customized_metric_specification": {
                "namespace": elastic.load.namespace,
                "metric_name": elastic.load.name,
                "statistic": "Average",
                "metric_dimensions": [
                    {"name": name, "value": value} for name, value in elastic.load.dimensions.items()
                ],
            },
        },
        opts=opts,
    )
    return group


def _mixed(plan: AwsGroupPlan, elastic: Elastic, template_id: Input[str]) -> GroupMixedInstancesPolicyArgsDict:
    return {
        "launch_template": {
            "launch_template_specification": {"launch_template_id": template_id, "version": NEWEST},
            "overrides": [{"instance_type": plan.type}],
        },
        "instances_distribution": _distribution(plan.market, elastic),
    }


def _distribution(market: Market, elastic: Elastic) -> GroupMixedInstancesPolicyInstancesDistributionArgsDict:
    distribution: GroupMixedInstancesPolicyInstancesDistributionArgsDict = {
        "on_demand_base_capacity": elastic.on_demand_base,
        "on_demand_percentage_above_base_capacity": elastic.on_demand_percent,
    }
    if isinstance(market, Spot):
        distribution["spot_allocation_strategy"] = market.strategy
        if market.max_price_usd_per_hour is not None:
            distribution["spot_max_price"] = dollars(market.max_price_usd_per_hour)
    return distribution
