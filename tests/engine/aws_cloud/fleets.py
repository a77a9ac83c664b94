"""What the provider makes of a fleet's arguments beyond what a program states.

Source: hashicorp/terraform-provider-aws, internal/service/ec2/ec2_fleet.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

POOLS = "instancePoolsToUseCount"  # 1 unless stated, and at least that
TOLD = {"lowestPrice", "diversified"}  # the strategies of which it reads 1 back; EC2 tells none of the others: 0
PARTS = {"on-demand": "onDemandTargetCapacity", "spot": "spotTargetCapacity"}


def problems(inputs: Mapping[str, Any]) -> list[str]:
    """What the provider refuses, a line each."""
    pools = (inputs.get("spotOptions") or {}).get(POOLS, 1)
    told = f"expected spot_options.0.instance_pools_to_use_count to be at least (1), got {pools}"
    return [] if pools >= 1 else [told]


def stated(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with the provider's default."""
    spot = inputs.get("spotOptions")
    return {**inputs, "spotOptions": {POOLS: 1, **spot}} if spot else {**inputs}


def told(properties: Mapping[str, Any]) -> dict[str, Any]:
    """A fleet as it is read back: EC2 tells how its target is divided."""
    target, spot = properties["targetCapacitySpecification"], properties.get("spotOptions")
    kind, total = target["defaultTargetCapacityType"], target["totalTargetCapacity"]
    divided = {part: total if kind == name else 0 for name, part in PARTS.items()}
    read = {**properties, "targetCapacitySpecification": {**divided, **target}}
    return {**read, "spotOptions": {**spot, POOLS: int(spot["allocationStrategy"] in TOLD)}} if spot else read


def wanted(have: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as they are compared: a part that nobody states is 0, unless all is of the default type."""
    was = have["targetCapacitySpecification"]
    total = was["totalTargetCapacity"]
    parts = {
        part: total if was["defaultTargetCapacityType"] == name and was[part] == total else 0
        for name, part in PARTS.items()
    }
    return {**inputs, "targetCapacitySpecification": {**parts, **inputs.get("targetCapacitySpecification", {})}}
