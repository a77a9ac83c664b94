"""Nodes that work as one: an EC2 Fleet.

Sources: EC2 API, CreateFleet (min_target_capacity and the single-zone, single-type options are for `instant` alone and
are what makes it all or nothing; a fleet leaves its instances running unless told to end them) and ModifyFleet (for
`maintain` alone: another size of an instant fleet is another fleet, which needs the place of the first). The provider's
own ways: hashicorp/terraform-provider-aws, internal/service/ec2/ec2_fleet.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pulumi import Input, ResourceOptions
from pulumi_aws import ec2

from infra.clouds.aws.plan.capacity import FixedSize, Spot
from infra.clouds.aws.plan.model import AwsGroupPlan
from infra.clouds.aws.resources.nodes.launch_template import NEWEST, dollars

if TYPE_CHECKING:
    from pulumi_aws.ec2 import (
        FleetLaunchTemplateConfigOverrideArgsDict,
        FleetOnDemandOptionsArgsDict,
        FleetSpotOptionsArgsDict,
    )

ONCE = ResourceOptions(
    replace_on_changes=[
        "targetCapacitySpecification.totalTargetCapacity",
        "launchTemplateConfigs[*].overrides[*].instanceType",
        "launchTemplateConfigs[*].overrides[*].subnetId",
    ],
    delete_before_replace=True,
)

KEPT = ResourceOptions(  # how `ops` divides it where spot does not come; the provider would replace the fleet for it
    ignore_changes=[
        "targetCapacitySpecification.onDemandTargetCapacity",
        "targetCapacitySpecification.spotTargetCapacity",
    ],
)
# Over its zones, each a pool of its one type. Of the strategies that weigh capacity the provider reads back 0 pools and
# wants 1, its default: it would replace the fleet with each `up`, and what an ignored 0 becomes its own check refuses.
STRATEGY = "diversified"


def fleet(
    name: str,
    plan: AwsGroupPlan,
    gang: FixedSize,
    template_id: Input[str],
    subnets: Sequence[Input[str]],
    opts: ResourceOptions,
) -> ec2.Fleet:
    """The fleet; its instances end with it."""
    opts = ResourceOptions.merge(opts, ONCE if gang.fleet_type == "instant" else KEPT)
    return ec2.Fleet(
        name,
        type=gang.fleet_type,
        launch_template_configs=[
            {
                "launch_template_specification": {"launch_template_id": template_id, "version": NEWEST},
                "overrides": [_override(plan, subnet) for subnet in subnets],
            }
        ],
        target_capacity_specification={
            "default_target_capacity_type": gang.capacity_type,
            "total_target_capacity": gang.nodes,
        },
        spot_options=_spot(plan.market, gang) if isinstance(plan.market, Spot) else None,
        on_demand_options=_on_demand(gang) if gang.capacity_type == "on-demand" else None,
        replace_unhealthy_instances=gang.fleet_type == "maintain",
        terminate_instances=True,
        terminate_instances_with_expiration=True,
        opts=opts,
    )


def _override(plan: AwsGroupPlan, subnet: Input[str]) -> FleetLaunchTemplateConfigOverrideArgsDict:
    override: FleetLaunchTemplateConfigOverrideArgsDict = {"instance_type": plan.type, "subnet_id": subnet}
    if isinstance(plan.market, Spot) and plan.market.max_price_usd_per_hour is not None:
        override["max_price"] = dollars(plan.market.max_price_usd_per_hour)
    return override


def _spot(market: Spot, gang: FixedSize) -> FleetSpotOptionsArgsDict:
    options: FleetSpotOptionsArgsDict = {
        "allocation_strategy": STRATEGY,
        "instance_interruption_behavior": market.interruption,
    }
    if gang.fleet_type == "instant":
        options["min_target_capacity"] = gang.nodes
        options["single_availability_zone"] = options["single_instance_type"] = True
    return options


def _on_demand(gang: FixedSize) -> FleetOnDemandOptionsArgsDict | None:
    if gang.fleet_type != "instant":
        return None
    return {"min_target_capacity": gang.nodes, "single_availability_zone": True, "single_instance_type": True}
