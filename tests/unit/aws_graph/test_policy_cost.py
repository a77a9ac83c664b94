"""The ceiling of what nodes may cost an hour, counted from what would be declared."""

from __future__ import annotations

from dataclasses import replace

import pytest
from policy_samples import EKS_NODES, TAGS, TEMPLATE, fleet, instance, made, scaling, the_provider

from infra.policy import Resource, check

REGION = the_provider()
A100 = made(TEMPLATE, "a100", instanceType="p4d.24xlarge")
IN_A_BLOCK = made(TEMPLATE, "h100", instanceType="p5.48xlarge", instanceMarketOptions={"marketType": "capacity-block"})
ON_DEMAND = {"defaultTargetCapacityType": "on-demand", "totalTargetCapacity": 4}


def of(template: Resource, key: str, resource: Resource) -> list[Resource]:
    return [REGION, template, replace(resource, references={key: [template.urn]})]


def at_most(resources: list[Resource], ceiling: float) -> bool:
    """Whether the resources cost no more than the ceiling."""
    return not [finding for finding in check(resources, ceiling) if finding.rule == "cost-ceiling"]


GANG = of(A100, "launchTemplateConfigs", fleet(targetCapacitySpecification=ON_DEMAND, launchTemplateConfigs=[{}]))
GROUP = of(
    A100,
    "mixedInstancesPolicy",
    replace(scaling(), inputs={**scaling(onDemandPercentageAboveBaseCapacity=100).inputs, "maxSize": 3}),
)
SPOT_GROUP = of(
    A100,
    "mixedInstancesPolicy",
    replace(
        scaling(),
        inputs={**scaling(onDemandPercentageAboveBaseCapacity=0, spotMaxPrice="14").inputs, "maxSize": 3},
    ),
)
EKS = of(A100, "launchTemplate", made(EKS_NODES, tags=TAGS, scalingConfig={"maxSize": 2}))


@pytest.mark.parametrize(
    ("resources", "usd_per_hour"),
    [
        pytest.param([REGION, fleet()], 4 * 14, id="a spot fleet at its cap"),
        pytest.param(GANG, 4 * 21.957642, id="a gang at its template's price"),
        pytest.param(GROUP, 3 * 21.957642, id="a scaling group at its largest"),
        pytest.param(SPOT_GROUP, 3 * 14, id="a spot group at its largest and its cap"),
        pytest.param(EKS, 2 * 21.957642, id="EKS nodes at their most"),
        pytest.param([REGION, instance(instanceType="g5.xlarge")], 1.006, id="a machine"),
    ],
)
def test_what_nodes_cost_is_held_against_the_ceiling(resources: list[Resource], usd_per_hour: float) -> None:
    assert at_most(resources, usd_per_hour + 0.001)
    assert not at_most(resources, usd_per_hour - 0.001)


def test_without_a_ceiling_nothing_is_too_dear() -> None:
    assert not [finding for finding in check(GANG) if finding.rule == "cost-ceiling"]


def test_groups_are_added_up() -> None:
    assert at_most(GANG, 120)
    assert not at_most([*GANG, instance(instanceType="p4d.24xlarge")], 105)


def test_a_block_was_paid_and_costs_nothing_more() -> None:
    paid = of(IN_A_BLOCK, "launchTemplateConfigs", fleet(launchTemplateConfigs=[{"overrides": [{}]}]))

    assert at_most(paid, 0.01)


@pytest.mark.parametrize("unknown", [{"instanceType": "p5e.48xlarge"}, {"instanceType": "p99.metal"}, {}])
def test_a_node_without_a_price_is_held_to_no_ceiling(unknown: dict[str, str]) -> None:
    (finding,) = (each for each in check([REGION, instance(**unknown)], 1000) if each.rule == "cost-ceiling")

    assert finding.path == "it"
    assert "has no price to hold against" in finding.message
