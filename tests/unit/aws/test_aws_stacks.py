"""The shipped stacks of AWS: each decides without an error, and shows what it is there to show."""

from __future__ import annotations

from collections import Counter
from ipaddress import IPv4Network

import pytest
from clusters import REPOSITORY

from infra.clouds.aws.plan.capacity import CapacityBlock, Elastic, FixedSize, ManagedPool, Reservation, Spot
from infra.clouds.aws.plan.model import AwsGroupPlan, AwsPlan
from infra.evaluate import decide
from infra.spec import load, stacks

STACKS = [stack for stack in stacks(REPOSITORY) if load(REPOSITORY, stack).spec.cloud == "aws"]
DOCUMENTATION = IPv4Network("203.0.113.0/24")  # RFC 5737


def plan_of(stack: str) -> AwsPlan:
    plan = decide(load(REPOSITORY, stack))
    assert isinstance(plan, AwsPlan)
    return plan


def cards_of(group: AwsGroupPlan) -> tuple[int, int]:
    """(IP interfaces, EFA-only interfaces)"""
    kinds = Counter(each.interface_type for each in group.interfaces)
    return kinds["interface"], kinds["efa-only"]


def test_the_shipped_stacks_are_these() -> None:
    assert set(STACKS) >= {"a100-prod", "a100-spot", "h100-block", "b300-lab", "inference-g6", "dev-g5", "eks-a100"}


@pytest.mark.parametrize("stack", STACKS)
def test_a_shipped_stack_has_nothing_to_object_to(stack: str) -> None:
    assert [finding for finding in plan_of(stack).findings if finding.level != "info"] == []


@pytest.mark.parametrize("stack", STACKS)
def test_a_shipped_stack_opens_nothing_but_an_example_network(stack: str) -> None:
    rules = plan_of(stack).network.rules

    inward = [IPv4Network(rule.peer_cidr) for rule in rules if rule.direction == "ingress" and rule.peer_cidr]
    assert all(network.subnet_of(DOCUMENTATION) for network in inward)


@pytest.mark.parametrize(
    ("stack", "group", "cards"),
    [
        ("a100-prod", "trainer", (1, 4)),
        ("a100-spot", "trainer", (1, 4)),
        ("h100-block", "trainer", (1, 32)),
        ("b300-lab", "lab", (1, 16)),
        ("inference-g6", "serve", (1, 0)),
        ("dev-g5", "dev", (1, 0)),
        ("eks-a100", "trainer", (1, 4)),
    ],
)
def test_a_shipped_stack_has_the_cards_of_its_type(stack: str, group: str, cards: tuple[int, int]) -> None:
    (found,) = [each for each in plan_of(stack).groups if each.name == group]

    assert cards_of(found) == cards


def test_a100_prod_takes_its_reservation_and_no_placement_group() -> None:
    _, trainer = plan_of("a100-prod").groups

    assert trainer.market == Reservation(id="cr-0123456789abcdef0", group_arn=None)
    assert trainer.placement.strategy is None
    assert trainer.capacity == FixedSize(nodes=4, fleet_type="instant", capacity_type="on-demand")


def test_a100_spot_is_refilled_in_a_group_of_its_own() -> None:
    _, trainer = plan_of("a100-spot").groups

    assert trainer.market == Spot(max_price_usd_per_hour=14.0, fallback="on-demand")
    assert trainer.capacity == FixedSize(nodes=4, fleet_type="maintain", capacity_type="spot")
    assert trainer.placement.strategy == "cluster"


def test_h100_block_is_all_or_nothing_outside_any_group() -> None:
    _, trainer = plan_of("h100-block").groups

    assert trainer.market == CapacityBlock(id="cr-0fedcba9876543210")
    assert trainer.capacity == FixedSize(nodes=2, fleet_type="instant", capacity_type="capacity-block")
    assert trainer.placement.strategy is None


def test_inference_follows_the_load_of_its_gpus_over_two_zones() -> None:
    (serve,) = plan_of("inference-g6").groups

    assert isinstance(serve.capacity, Elastic)
    assert (serve.capacity.least, serve.capacity.most, serve.capacity.gpu_load_percent) == (1, 6, 85)
    assert serve.subnets == ("private-us-east-1a", "private-us-east-1b")


def test_eks_a100_is_the_node_group_of_a100_prod_in_a_cluster() -> None:
    _, plain = plan_of("a100-prod").groups
    _, trainer = plan_of("eks-a100").groups

    assert trainer.market == plain.market
    assert trainer.interfaces == plain.interfaces
    assert trainer.placement == plain.placement
    assert isinstance(trainer.capacity, ManagedPool)
    assert (trainer.capacity.nodes, trainer.capacity.image_type) == (4, "AL2023_x86_64_NVIDIA")


def test_b300_lab_opens_no_port_to_any_network() -> None:
    plan = plan_of("b300-lab")

    assert plan.access.session_manager
    assert not any(rule.direction == "ingress" and rule.peer_cidr for rule in plan.network.rules)


def beside(gib: int, nat: int, addresses: int) -> float:
    """USD an hour of root volumes, NAT gateways, public addresses and the stack's key."""
    return gib * 0.08 / 730 + nat * 0.045 + addresses * 0.005 + 1 / 730


A100, LUSTRE = beside(gib=850, nat=1, addresses=2), 19_200 * 0.21 / 730


@pytest.mark.parametrize(
    ("stack", "hourly", "most", "per_gpu", "per_pflop"),
    [
        # 4 × 21.957642 + 0.096; by GPU 21.957642 / 8; by work that over 0.2712 measured PFLOPS
        ("a100-prod", 87.926568 + A100, 87.926568 + A100, 2.74470525, 10.1206),
        ("a100-spot", 56.096 + A100, 87.926568 + A100, 1.75, 6.4528),
        # the block was paid before; 19,200 GiB of Lustre at 250 MB/s per TiB
        ("h100-block", 0.096 + LUSTRE + beside(450, 1, 2), 0.096 + LUSTRE + beside(450, 1, 2), None, None),
        ("b300-lab", 284.832 + beside(400, 1, 1), 284.832 + beside(400, 1, 1), 17.802, 10.0633),
        ("inference-g6", 0.8048 + beside(200, 2, 2), 4.8288 + beside(1200, 2, 2), 0.8048, None),
        ("dev-g5", 1.006 + beside(200, 0, 1), 1.006 + beside(200, 0, 1), 1.006, None),
        # 4 × 21.957642 + 2 × 0.096 + 0.10 for the control plane
        ("eks-a100", 88.122568 + beside(900, 2, 2), 88.122568 + beside(900, 2, 2), 2.74470525, 10.1206),
    ],
)
def test_a_shipped_stack_costs_what_the_tables_say(
    stack: str, hourly: float, most: float, per_gpu: float | None, per_pflop: float | None
) -> None:
    cost = plan_of(stack).cost

    assert (cost.hourly, cost.hourly_max) == (pytest.approx(hourly), pytest.approx(most))
    assert cost.per_gpu_hour == (None if per_gpu is None else pytest.approx(per_gpu))
    if per_pflop is not None:
        assert cost.per_pflop_hour == pytest.approx(per_pflop, rel=1e-4)
