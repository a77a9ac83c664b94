"""What a cluster on AWS costs: the tables' arithmetic, and nothing that they do not hold."""

from __future__ import annotations

import pytest
from clusters import BUCKET, LUSTRE, SSH, Project, group, with_head

from infra.plan.aws import Elastic


def test_an_elastic_spot_group_with_a_fallback_has_its_least_nodes_on_demand(aws: Project) -> None:
    nodes = group(count=None, min=2, max=8, market="{kind: spot, max_price: 10, fallback: on-demand}")

    plan = aws.plan(nodes=nodes)

    capacity = plan.groups[0].capacity
    assert isinstance(capacity, Elastic)
    assert (capacity.on_demand_base, capacity.on_demand_percent) == (2, 0)
    assert plan.cost.hourly == pytest.approx(2 * 21.957642)
    assert plan.cost.hourly_max == pytest.approx(8 * 21.957642)


@pytest.mark.parametrize(
    ("market", "expected", "most"),
    [
        ("{kind: on-demand}", 21.957642, 21.957642),
        ("{kind: spot}", 21.957642, 21.957642),
        ("{kind: spot, max_price: 14}", 14, 14),
        ("{kind: spot, max_price: 14, fallback: on-demand}", 14, 21.957642),
        ("{kind: spot, max_price: 30}", 21.957642, 21.957642),
        ("{kind: reservation, id: cr-0123456789abcdef0}", 21.957642, 21.957642),
        ("{kind: block, id: cr-0123456789abcdef0}", 0, 0),
    ],
)
def test_a_node_costs_its_market_and_at_most_its_limit(aws: Project, market: str, expected: float, most: float) -> None:
    cost = aws.plan(nodes=group(market=market)).cost

    assert (cost.hourly, cost.hourly_max) == (pytest.approx(4 * expected), pytest.approx(4 * most))


def test_every_item_of_the_bill_is_listed_with_its_source_and_none_is_invented(aws: Project) -> None:
    items = aws.plan(nodes=with_head(), access=SSH, storage=f"[{BUCKET}, {LUSTRE}]").cost.items

    priced = {item.name: item.quantity for item in items if item.hourly is not None}
    unpriced = {item.name.partition(",")[0]: item.quantity for item in items if item.hourly is None}
    assert priced == {"head": 1, "a": 4}
    assert unpriced == {"root volumes": 850, "NAT gateways": 1, "d": 1, "f": 19200, "keys": 1, "flow log": 1}
    assert all(item.source for item in items)
