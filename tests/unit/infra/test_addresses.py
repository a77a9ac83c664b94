"""The address plan: inside the network, never twice, and still while groups grow."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

from hypothesis import given
from hypothesis import strategies as st

from infra.plan.addresses import BLOCK, AddressNeed, allot

NETWORKS = st.builds(lambda prefix: IPv4Network(f"10.8.0.0/{prefix}"), st.integers(20, 32))
GROUPS = st.lists(
    st.builds(
        lambda count, given: AddressNeed(count=len(given) if given else count, given=tuple(given) or None),
        st.integers(1, 50),
        st.lists(st.integers(1, 14).map(lambda host: IPv4Address(f"10.8.0.{host}")), max_size=3, unique=True),
    ),
    max_size=5,
)


def hosts(network: str, *counts: int) -> list[list[int]]:
    """The last number of each address, group by group."""
    allotted = allot(IPv4Network(network), [AddressNeed(count=count) for count in counts])
    return [[int(address) & 255 for address in group] for group in allotted]


def test_the_first_node_has_host_11() -> None:
    assert hosts("127.0.0.0/24", 2) == [[11, 12]]


def test_a_growing_group_moves_neither_its_nodes_nor_its_neighbours() -> None:
    assert hosts("127.0.0.0/24", 1, 2) == [[11], [31, 32]]
    assert hosts("127.0.0.0/24", 3, 2) == [[11, 12, 13], [31, 32]]


def test_a_group_that_outgrows_its_block_takes_the_next() -> None:
    assert hosts("127.0.0.0/24", 21, 1)[1] == [51]


def test_a_network_without_room_gives_what_it_has() -> None:
    assert hosts("10.8.0.0/28", 9) == [[11, 12, 13, 14]]
    assert hosts("10.8.0.8/32", 1, 1) == [[], []]


def test_given_addresses_are_kept_and_left_out_of_the_others() -> None:
    taken = (IPv4Address("127.0.0.12"),)

    allotted = allot(IPv4Network("127.0.0.0/24"), [AddressNeed(count=2), AddressNeed(count=1, given=taken)])

    assert [list(map(str, group)) for group in allotted] == [["127.0.0.11", "127.0.0.13"], ["127.0.0.12"]]


@given(NETWORKS, GROUPS)
def test_no_chosen_address_is_outside_the_network_or_chosen_twice(
    network: IPv4Network, groups: list[AddressNeed]
) -> None:
    given_ones = {address for group in groups for address in group.given or ()}

    chosen = [
        address
        for group, addresses in zip(groups, allot(network, groups), strict=True)
        if group.given is None
        for address in addresses
    ]

    assert len(set(chosen)) == len(chosen)
    assert not given_ones & set(chosen)
    assert all(address in network for address in chosen)
    assert network.broadcast_address not in chosen
    assert network.network_address not in chosen


@given(st.integers(1, BLOCK), st.integers(1, BLOCK), st.integers(1, BLOCK))
def test_growth_within_a_block_moves_nothing(small: int, large: int, other: int) -> None:
    small, large = sorted((small, large))
    network = IPv4Network("10.8.0.0/24")

    before = allot(network, [AddressNeed(count=small), AddressNeed(count=other)])
    after = allot(network, [AddressNeed(count=large), AddressNeed(count=other)])

    assert after[0][:small] == before[0]
    assert after[1] == before[1]
