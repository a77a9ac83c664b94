"""What a cluster on AWS costs: the tables' arithmetic, and nothing that they do not hold."""

from __future__ import annotations

import csv

import pytest
from clusters import BUCKET, LUSTRE, REPOSITORY, SSH, Project, group, with_head
from eks_rule_cases import eks

from infra import catalog
from infra.clouds.aws.plan.capacity import CapacityBlock, Elastic, Spot
from infra.clouds.aws.plan.model import AwsGroupPlan, AwsPlan
from infra.clouds.aws.plan.pricing import label
from infra.evaluate import decide
from infra.plan.model import Cost
from infra.spec import load, stacks

STACKS = [stack for stack in stacks(REPOSITORY) if load(REPOSITORY, stack).spec.cloud == "aws"]
CONTROL_PLANE = 0.10


@pytest.mark.parametrize("stack", STACKS)
def test_a_stack_costs_what_its_nodes_cost_in_the_table_itself(stack: str) -> None:
    plan = decide(load(REPOSITORY, stack))
    assert isinstance(plan, AwsPlan)
    with (REPOSITORY / "infra" / "catalog" / "tables" / "prices.csv").open() as file:
        table = {(row["type"], row["region"]): float(row["on_demand_per_hour"]) for row in csv.DictReader(file)}

    nodes = {each.name: each.count * at_most(each, table[each.type, plan.region]) for each in plan.groups}

    items = {item.name: item.hourly or 0 for item in plan.cost.items}
    assert {name: items[name] for name in nodes} == pytest.approx(nodes, rel=0.01)
    assert plan.cost.hourly == pytest.approx(sum(items.values()))


@pytest.mark.parametrize("stack", STACKS)
def test_what_stands_beside_the_nodes_costs_what_its_own_table_says(stack: str) -> None:
    with (REPOSITORY / "infra" / "catalog" / "tables" / "extras.csv").open() as file:
        table = {label(row["item"]): float(row["usd"]) / float(row["hours"]) for row in csv.DictReader(file)}

    items = {item.name: item for item in decide(load(REPOSITORY, stack)).cost.items if item.name in table}

    assert {"root volumes, GiB", "public addresses", "keys"} <= items.keys()
    assert {name: item.hourly for name, item in items.items()} == pytest.approx(
        {name: item.quantity * table[name] for name, item in items.items()}
    )


def test_a_file_system_costs_what_its_speed_costs(aws: Project) -> None:
    cost = aws.plan(storage=f"[{BUCKET}, {LUSTRE}]").cost

    assert next(item.hourly for item in cost.items if "Lustre" in item.name) == pytest.approx(19200 * 0.21 / 730)


def at_most(group: AwsGroupPlan, on_demand: float) -> float:
    """What one node costs an hour as it is bought: a block was paid before, and spot has its cap."""
    if isinstance(group.market, CapacityBlock):
        return 0
    cap = group.market.max_price_usd_per_hour if isinstance(group.market, Spot) else None
    return min(on_demand, cap or on_demand)


def test_the_control_plane_of_eks_is_an_item_of_its_own(aws: Project) -> None:
    cost = aws.plan(**eks()).cost

    (item,) = [each for each in cost.items if each.name == "control plane of EKS"]
    assert (item.quantity, item.hourly) == (1, CONTROL_PLANE)
    assert nodes_and(cost, item.name) == pytest.approx(4 * 21.957642 + 2 * 0.096 + CONTROL_PLANE)


def nodes_and(cost: Cost, *names: str) -> float:
    """What is expected an hour for the nodes, and for the items of these names."""
    beside = {label(extra.item) for extra in catalog.load().extras} - set(names)
    return sum(item.hourly or 0 for item in cost.items if item.name not in beside)


def test_an_elastic_spot_group_with_a_fallback_has_its_least_nodes_on_demand(aws: Project) -> None:
    nodes = group(count=None, min=2, max=8, market="{kind: spot, max_price: 10, fallback: on-demand}")

    plan = aws.plan(nodes=nodes)

    capacity = plan.groups[0].capacity
    assert isinstance(capacity, Elastic)
    assert (capacity.on_demand_base, capacity.on_demand_percent) == (2, 0)
    assert nodes_and(plan.cost) == pytest.approx(2 * 21.957642)
    volumes = 6 * plan.groups[0].root.size_gib * 0.08 / 730
    assert plan.cost.hourly_max - plan.cost.hourly == pytest.approx(6 * 21.957642 + volumes)


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

    assert nodes_and(cost) == pytest.approx(4 * expected)
    assert cost.hourly_max - cost.hourly == pytest.approx(4 * (most - expected))


def test_every_item_of_the_bill_is_listed_with_its_source_and_none_is_invented(aws: Project) -> None:
    items = aws.plan(nodes=with_head(), access=SSH, storage=f"[{BUCKET}, {LUSTRE}]").cost.items

    priced = {item.name: item.quantity for item in items if item.hourly is not None}
    unpriced = {item.name.partition(",")[0]: item.quantity for item in items if item.hourly is None}
    assert priced == {
        "head": 1, "a": 4, "root volumes, GiB": 850, "NAT gateways": 1, "public addresses": 2, "keys": 1,
        "Lustre at 250 MB/s per TiB, GiB": 19200,
    }  # fmt: skip
    assert unpriced == {
        "d": 1,
        "bucket of the playbooks": 1,
        "flow log": 1,
        "queue": 1,
        "traffic between zones and to the internet": 1,
    }
    assert all(item.source for item in items)
