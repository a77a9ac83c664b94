"""A capacity block is bought only when the stack file says so in one exact sentence, and then once."""

from __future__ import annotations

from pathlib import Path

from graph_clusters import BLOCK
from rendered import inputs, planned, render, the

OFFERING = "cb-0123456789abcdef0"
SENTENCE = f"buy {OFFERING} for at most 40000 USD, never refunded"
BOUGHT = f'{{kind: block, buy: {{offering: {OFFERING}, hours: 48, usd_at_most: 40000.0, confirm: "{SENTENCE}"}}}}'
CLUSTER = BLOCK.replace("{kind: block, id: cr-0123456789abcdef0}", BOUGHT)


def test_what_was_confirmed_is_bought_and_protected(root: Path) -> None:
    graph = render(planned(root, CLUSTER), root)

    bought = the(graph, "CapacityBlockReservation")
    assert (bought.name, bought.protect) == ("trainer-block", True)
    assert (bought.inputs["capacityBlockOfferingId"], bought.inputs["instancePlatform"]) == (OFFERING, "Linux/UNIX")


def test_nodes_start_in_the_block_that_is_bought(root: Path) -> None:
    graph = render(planned(root, CLUSTER), root)

    template = inputs(graph, "LaunchTemplate", "trainer-template")
    target = template["capacityReservationSpecification"]["capacityReservationTarget"]
    assert target == {"capacityReservationId": "${trainer-block.id}"}
    assert template["instanceMarketOptions"] == {"marketType": "capacity-block"}


def test_a_block_that_is_there_is_bought_by_nobody(root: Path) -> None:
    graph = render(planned(root, BLOCK), root)

    assert graph.of("CapacityBlockReservation") == []


def test_the_price_of_a_purchase_is_its_limit_and_no_price_an_hour(root: Path) -> None:
    plan = planned(root, CLUSTER)

    (item,) = (item for item in plan.cost.items if item.name == "trainer")
    assert item.hourly is None
    assert "at most 40,000.00 USD when `up` buys it" in item.source
