"""Which placement group a node group is launched into."""

from __future__ import annotations

import pytest

from infra.clouds.aws.plan.placement import Market, placement
from infra.plan.layout import PlacementError

GROUP = "arn:aws:ec2:us-east-1:111122223333:placement-group/reserved"


@pytest.mark.parametrize("market", ["on-demand", "spot"])
def test_a_fabric_group_gets_a_cluster_group_of_its_own(market: Market) -> None:
    placed = placement(market, nodes=4, zones=1, fabric=True)

    assert (placed.strategy, placed.existing_arn, placed.partitions) == ("cluster", None, None)


@pytest.mark.parametrize("fabric", [True, False])
def test_a_capacity_block_never_takes_a_group(fabric: bool) -> None:
    placed = placement("capacity-block", nodes=4, zones=1, fabric=fabric)

    assert (placed.strategy, placed.existing_arn) == (None, None)


@pytest.mark.parametrize("fabric", [True, False])
def test_a_reservation_made_in_a_group_is_used_in_that_group(fabric: bool) -> None:
    placed = placement("reservation", nodes=4, zones=1, fabric=fabric, reservation_group_arn=GROUP)

    assert (placed.strategy, placed.existing_arn) == ("cluster", GROUP)


def test_a_reservation_made_outside_any_group_is_used_outside_any_group() -> None:
    assert placement("reservation", nodes=4, zones=1, fabric=True).strategy is None


def test_nodes_without_fabric_get_no_group() -> None:
    assert placement("on-demand", nodes=4, zones=2, fabric=False).strategy is None


@pytest.mark.parametrize(("nodes", "partitions"), [(3, 3), (7, 7), (20, 7)])
def test_nodes_that_must_not_fall_together_get_up_to_seven_partitions(nodes: int, partitions: int) -> None:
    placed = placement("on-demand", nodes=nodes, zones=1, fabric=False, apart=True)

    assert (placed.strategy, placed.partitions) == ("partition", partitions)


@pytest.mark.parametrize("market", ["on-demand", "spot", "reservation", "capacity-block"])
def test_a_fabric_over_two_zones_is_refused(market: Market) -> None:
    with pytest.raises(PlacementError, match="spans 2; name one zone"):
        placement(market, nodes=4, zones=2, fabric=True)


@pytest.mark.parametrize(("market", "fabric"), [("on-demand", True), ("reservation", False), ("capacity-block", False)])
def test_nodes_that_stand_where_they_stand_cannot_be_asked_apart(market: Market, fabric: bool) -> None:
    with pytest.raises(PlacementError, match="cannot be asked apart"):
        placement(market, nodes=4, zones=1, fabric=fabric, apart=True)


@pytest.mark.parametrize("market", ["on-demand", "spot", "capacity-block"])
def test_a_reservations_group_without_the_reservation_is_refused(market: Market) -> None:
    with pytest.raises(PlacementError, match=f"the market is {market}"):
        placement(market, nodes=4, zones=1, fabric=True, reservation_group_arn=GROUP)
