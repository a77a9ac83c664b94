"""What is bought for nodes has a price that was agreed to, and ends with the stack.

Sources: EC2 API, SpotMarketOptions and CreateFleet (without a maximum, spot costs up to the on-demand price; a fleet
leaves its instances running unless told to end them); Auto Scaling API, InstancesDistribution.
"""

from __future__ import annotations

from collections.abc import Iterator

from infra.clouds.aws.policy.types import FLEET, GROUP, INSTANCE, LAUNCH_TEMPLATE, SPOT_INSTANCE
from infra.policy.rule import Resource, Violation, rule
from infra.policy.wire import mapping, nested, number, true

SPOT_FLEET = "aws:ec2/spotFleetRequest:SpotFleetRequest"
NO_CAP = "must be set: without a price cap spot costs whatever it costs, up to the on-demand price"


@rule("spot-price-cap", LAUNCH_TEMPLATE, INSTANCE)
def spot_price_cap(resource: Resource) -> Iterator[Violation]:
    """A template or machine that buys spot names its limit."""
    options = mapping(resource.inputs.get("instanceMarketOptions"))
    if options.get("marketType") == "spot" and not mapping(options.get("spotOptions")).get("maxPrice"):
        yield "instanceMarketOptions.spotOptions.maxPrice", NO_CAP


@rule("spot-request-price-cap", SPOT_INSTANCE, SPOT_FLEET)
def spot_request_price_cap(resource: Resource) -> Iterator[Violation]:
    """A spot request names its limit."""
    if not resource.inputs.get("spotPrice"):
        yield "spotPrice", NO_CAP


@rule("fleet-price-cap", FLEET)
def fleet_price_cap(resource: Resource) -> Iterator[Violation]:
    """Every pool that a fleet may buy from has a limit, or the fleet as a whole."""
    target = mapping(resource.inputs.get("targetCapacitySpecification"))
    spot = target.get("defaultTargetCapacityType", "spot") == "spot" or number(target.get("spotTargetCapacity"))
    if not spot or mapping(resource.inputs.get("spotOptions")).get("maxTotalPrice"):
        return
    for path, config in nested(resource.inputs, "launchTemplateConfigs"):
        overrides = list(nested(config, "overrides"))
        if not overrides:
            yield f"{path}.overrides", f"maxPrice {NO_CAP}"
        for below, override in overrides:
            if not override.get("maxPrice"):
                yield f"{path}.{below}.maxPrice", NO_CAP


@rule("group-price-cap", GROUP)
def group_price_cap(resource: Resource) -> Iterator[Violation]:
    """A scaling group that buys spot names its limit."""
    policy = mapping(resource.inputs.get("mixedInstancesPolicy"))
    distribution = mapping(policy.get("instancesDistribution"))
    share = number(distribution.get("onDemandPercentageAboveBaseCapacity", 100))
    if policy and share != 100 and not distribution.get("spotMaxPrice"):
        yield "mixedInstancesPolicy.instancesDistribution.spotMaxPrice", NO_CAP


@rule("fleet-ends-with-the-stack", FLEET, SPOT_FLEET)
def fleet_ends_with_the_stack(resource: Resource) -> Iterator[Violation]:
    """A fleet ends its instances when it ends."""
    key = "terminateInstances" if resource.type == FLEET else "terminateInstancesOnDelete"
    if not true(resource.inputs.get(key)):
        yield key, "must be true: destroying the stack would leave the instances running and billed"


@rule("fleet-keeps-nobody", FLEET)
def fleet_keeps_nobody(resource: Resource) -> Iterator[Violation]:
    """A fleet ends what it no longer counts: by `launch` alone, or `no-termination`, nodes stay and are billed."""
    if resource.inputs.get("excessCapacityTerminationPolicy") == "no-termination":
        yield "excessCapacityTerminationPolicy", "must be `termination`: nodes above the target would stay"
    strategies = mapping(mapping(resource.inputs.get("spotOptions")).get("maintenanceStrategies"))
    if mapping(strategies.get("capacityRebalance")).get("replacementStrategy") == "launch":
        path = "spotOptions.maintenanceStrategies.capacityRebalance.replacementStrategy"
        yield path, "must be `launch-before-terminate`: the replaced node would run, and be billed, beside the new one"
