"""The network cards of every EFA GPU type, and of types that do not exist yet, by rule from their numbers."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.clouds.aws.plan.nics import Interface, Layout, NetworkCards, addresses_per_node, interfaces
from infra.plan.layout import NoFabricError

# EC2's numbers of the 37 GPU types with EFA (DescribeInstanceTypes, August 2026), and the interfaces that are expected.
TYPES: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "efa_types.json").read_text())

LAYOUTS: tuple[Layout, ...] = ("efficient", "bandwidth")


def numbers(name: str) -> NetworkCards:
    keys = ("cards", "interfaces_per_card", "efa_interfaces", "first_card_efa")
    return NetworkCards(**{key: TYPES[name][key] for key in keys})


def count(of: tuple[Interface, ...]) -> tuple[int, int]:
    """(IP interfaces, EFA-only interfaces)"""
    kinds = Counter(interface.interface_type for interface in of)
    return kinds["interface"], kinds["efa-only"]


networks = st.builds(
    lambda cards, per_card, first: NetworkCards(
        cards=cards, interfaces_per_card=per_card, efa_interfaces=cards - (not first), first_card_efa=first
    ),
    cards=st.integers(2, 64),
    per_card=st.integers(1, 15),
    first=st.booleans(),
)


@pytest.mark.parametrize("name", TYPES)
def test_every_efa_type_has_the_interfaces_that_aws_recommends(name: str) -> None:
    planned = interfaces(numbers(name), fabric=True)

    assert [[each.network_card_index, each.interface_type] for each in planned] == TYPES[name]["interfaces"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("p4d.24xlarge", (1, 4)),
        ("p5.48xlarge", (1, 32)),
        ("p5e.48xlarge", (1, 32)),
        ("p5en.48xlarge", (1, 16)),
        ("p6-b200.48xlarge", (1, 8)),
        ("p6-b300.48xlarge", (1, 16)),
        ("g6.8xlarge", (1, 1)),
    ],
)
def test_an_efficient_node_has_one_address_and_all_its_efa(name: str, expected: tuple[int, int]) -> None:
    planned = interfaces(numbers(name), fabric=True)

    assert count(planned) == expected
    assert addresses_per_node(planned) == 1


def test_p6_b300_has_no_efa_on_its_first_card() -> None:
    planned = interfaces(numbers("p6-b300.48xlarge"), fabric=True)

    assert [each.interface_type for each in planned if each.network_card_index == 0] == ["interface"]


def test_p5_with_bandwidth_has_an_ip_interface_on_every_fourth_card() -> None:
    planned = interfaces(numbers("p5.48xlarge"), fabric=True, layout="bandwidth")

    with_address = [each.network_card_index for each in planned if each.interface_type == "interface"]
    assert with_address == [0, 4, 8, 12, 16, 20, 24, 28]
    assert len(planned) == 40
    assert addresses_per_node(planned) == 8


def test_a_single_card_gains_nothing_from_the_bandwidth_layout() -> None:
    single = numbers("g6.8xlarge")

    assert interfaces(single, fabric=True, layout="bandwidth") == interfaces(single, fabric=True)


@given(networks, st.sampled_from(LAYOUTS))
def test_a_type_that_does_not_exist_yet_gets_all_its_efa_within_its_limits(
    network: NetworkCards, layout: Layout
) -> None:
    planned = interfaces(network, fabric=True, layout=layout)

    slots = Counter((each.network_card_index, each.device_index) for each in planned)
    per_card = Counter(each.network_card_index for each in planned)
    assert sum(each.interface_type != "interface" for each in planned) == network.efa_interfaces
    assert set(slots.values()) == {1}
    assert set(per_card) == set(range(network.cards))
    assert max(per_card.values()) <= network.interfaces_per_card
    assert all(each.device_index <= 1 for each in planned)
    assert 1 <= addresses_per_node(planned) <= 8


@given(networks, st.sampled_from(LAYOUTS))
def test_the_primary_is_the_first_and_never_efa_only(network: NetworkCards, layout: Layout) -> None:
    primary, *others = interfaces(network, fabric=True, layout=layout)

    assert primary.primary
    assert (primary.network_card_index, primary.device_index) == (0, 0)
    assert primary.interface_type != "efa-only"
    assert not any(other.primary for other in others)


def test_a_first_card_for_one_interface_carries_efa_and_address_together() -> None:
    network = NetworkCards(cards=2, interfaces_per_card=1, efa_interfaces=2, first_card_efa=True)

    planned = interfaces(network, fabric=True)

    assert [each.interface_type for each in planned] == ["efa", "efa-only"]


@pytest.mark.parametrize("name", TYPES)
def test_no_efa_node_may_have_a_public_address(name: str) -> None:
    assert not any(each.public_ip_allowed for each in interfaces(numbers(name), fabric=True))


def test_a_node_without_fabric_has_one_interface_that_may_have_a_public_address() -> None:
    (only,) = interfaces(numbers("p5.48xlarge"), fabric=False)

    assert (only.interface_type, only.primary, only.public_ip_allowed) == ("interface", True, True)


def test_types_of_equal_cards_have_equal_interfaces_and_may_share_a_template() -> None:
    planned = {
        name: interfaces(numbers(name), fabric=True) for name in ("p4d.24xlarge", "p4de.24xlarge", "p5.48xlarge")
    }

    assert planned["p4d.24xlarge"] == planned["p4de.24xlarge"]
    assert planned["p4d.24xlarge"] != planned["p5.48xlarge"]


def test_a_type_without_efa_is_refused_where_the_fabric_is_required() -> None:
    without = NetworkCards(cards=1, interfaces_per_card=4, efa_interfaces=0, first_card_efa=False)

    with pytest.raises(NoFabricError, match="has no EFA"):
        interfaces(without, fabric=True)


@pytest.mark.parametrize(("efa", "first"), [(8, False), (16, True), (18, True)])
def test_numbers_that_do_not_tell_which_cards_have_efa_are_refused(efa: int, first: bool) -> None:
    unclear = NetworkCards(cards=17, interfaces_per_card=1, efa_interfaces=efa, first_card_efa=first)

    with pytest.raises(NoFabricError, match="do not tell which card"):
        interfaces(unclear, fabric=True)
