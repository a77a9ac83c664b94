"""What nodes may cost an hour, counted from what would be declared: at their limit, on spot as on demand.

Prices are the catalogue's, of nodes only. Nodes of a Capacity Block are paid up front and cost nothing more (EC2 User
Guide, "Capacity Blocks pricing and billing"); a reservation costs the on-demand price.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from infra.catalog import UnknownRegionError, UnknownTypeError, load
from infra.clouds.aws.policy.types import EKS_NODES, FLEET, GROUP, INSTANCE, LAUNCH_TEMPLATE
from infra.policy.rule import Resource, Stack, stack_rule
from infra.policy.wire import items, mapping, nested, number


@dataclass(frozen=True)
class Bill:
    """What one resource may cost an hour. nodes, types: None where they cannot be read; cap: of spot, in USD a node."""

    resource: Resource
    nodes: int | None
    types: tuple[str, ...]
    cap: float | None = None


@stack_rule("cost-ceiling")
def cost_ceiling(stack: Stack) -> Iterator[tuple[Resource | None, str, str]]:
    """All nodes together cost no more an hour than whoever deploys them allows."""
    ceiling = stack.ceiling_usd_per_hour
    if ceiling is None:
        return
    total = 0.0
    for bill in _bills(stack):
        price = _price(bill, _region(stack, bill.resource))
        if bill.nodes is None or price is None:
            message = f"has no price to hold against the ceiling of {ceiling:g} USD an hour"
            yield bill.resource, "", f"{message}; `gpufleet catalog refresh` asks for it"
        else:
            total += bill.nodes * price
    if total > ceiling:
        yield None, "", f"nodes cost up to {total:.2f} USD an hour; the ceiling is {ceiling:g}"


def _bills(stack: Stack) -> Iterator[Bill]:
    for fleet in stack.of(FLEET):
        yield from _of_fleet(fleet, stack)
    for group in stack.of(GROUP):
        yield from _of_group(group, stack)
    for machine in stack.of(INSTANCE):
        yield Bill(machine, 1, _types(machine, "launchTemplate", machine.inputs.get("instanceType"), stack))
    for nodes in stack.of(EKS_NODES):
        size = number(mapping(nodes.inputs.get("scalingConfig")).get("maxSize"))
        if not _paid(nodes, "launchTemplate", stack):
            yield Bill(nodes, size, _types(nodes, "launchTemplate", nodes.inputs.get("instanceTypes"), stack))


def _of_fleet(fleet: Resource, stack: Stack) -> Iterator[Bill]:
    if _paid(fleet, "launchTemplateConfigs", stack):
        return
    target = mapping(fleet.inputs.get("targetCapacitySpecification"))
    overrides = [
        override
        for _, config in nested(fleet.inputs, "launchTemplateConfigs")
        for _, override in nested(config, "overrides")
    ]
    spot = target.get("defaultTargetCapacityType", "spot") == "spot" and not number(
        target.get("onDemandTargetCapacity")
    )
    caps = [_usd(override.get("maxPrice")) for override in overrides]
    yield Bill(
        fleet,
        number(target.get("totalTargetCapacity")),
        _types(fleet, "launchTemplateConfigs", [override.get("instanceType") for override in overrides], stack),
        max(cap for cap in caps if cap is not None) if spot and caps and None not in caps else None,
    )


def _of_group(group: Resource, stack: Stack) -> Iterator[Bill]:
    mixed = mapping(group.inputs.get("mixedInstancesPolicy"))
    key = "mixedInstancesPolicy" if mixed else "launchTemplate"
    if _paid(group, key, stack):
        return
    distribution = mapping(mixed.get("instancesDistribution"))
    overrides = [override for _, override in nested(mapping(mixed.get("launchTemplate")), "overrides")]
    spot = (
        number(distribution.get("onDemandPercentageAboveBaseCapacity", 100)) == 0
        and number(distribution.get("onDemandBaseCapacity", 0)) == 0
    )
    yield Bill(
        group,
        number(group.inputs.get("maxSize")),
        _types(group, key, [override.get("instanceType") for override in overrides], stack),
        _usd(distribution.get("spotMaxPrice")) if spot else None,
    )


def _types(resource: Resource, key: str, own: Any, stack: Stack) -> tuple[str, ...]:
    """The types that it names itself, else those of its template."""
    named = [kind for kind in items(own) if kind]
    inherited = [template.inputs.get("instanceType") for template in stack.made_of(resource, key, LAUNCH_TEMPLATE)]
    return tuple(str(kind) for kind in named or inherited)


def _paid(resource: Resource, key: str, stack: Stack) -> bool:
    """Whether all its nodes stand in a Capacity Block."""
    markets = [
        mapping(template.inputs.get("instanceMarketOptions")).get("marketType")
        for template in stack.made_of(resource, key, LAUNCH_TEMPLATE)
    ]
    return bool(markets) and set(markets) == {"capacity-block"}


def _price(bill: Bill, region: str) -> float | None:
    """USD an hour of one node, at its dearest; None where it cannot be told."""
    if bill.cap is not None:
        return bill.cap
    prices = [_on_demand(kind, region) for kind in bill.types]
    known = [price for price in prices if price is not None]
    return max(known) if known and len(known) == len(prices) else None


def _on_demand(kind: str, region: str) -> float | None:
    try:
        price = load().price(kind, region)
    except (UnknownTypeError, UnknownRegionError):
        return None
    return None if price is None else price.on_demand_per_hour


def _region(stack: Stack, resource: Resource) -> str:
    provider = stack.named(resource.provider)
    return str(provider.inputs.get("region", "")) if provider else ""


def _usd(value: Any) -> float | None:
    """A price as EC2 takes it, as text."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
