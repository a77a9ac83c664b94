"""The address plan of a VPC: what fits, what stays where it is, and what is refused with a way out."""

from __future__ import annotations

from ipaddress import IPv4Network
from itertools import combinations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from infra.plan.subnets import Kind, Need, SubnetsDoNotFitError, carve

KINDS: tuple[Kind, ...] = ("public", "private", "fabric")


def need(zone: str, kind: Kind, nodes: int, interfaces: int = 1) -> Need:
    return Need(zone=zone, kind=kind, nodes=nodes, interfaces=interfaces)


def zone_needs(zone: str, *, nodes: int = 4) -> list[Need]:
    return [need(zone, "public", 2), need(zone, "private", 3), need(zone, "fabric", nodes)]


@st.composite
def networks(draw: st.DrawFn) -> IPv4Network:
    prefix = draw(st.integers(16, 28))
    return IPv4Network((10 << 24 | draw(st.integers(0, 2 ** (prefix - 8) - 1)) << 32 - prefix, prefix))


def needs_of(zones: str, largest: int = 400) -> st.SearchStrategy[list[Need]]:
    one = st.builds(
        Need,
        zone=st.sampled_from(zones),
        kind=st.sampled_from(KINDS),
        nodes=st.integers(0, largest),
        interfaces=st.integers(1, 8),
    )
    return st.lists(one, min_size=1, max_size=12)


def large_enough(network: IPv4Network, needs: list[Need]) -> IPv4Network:
    """The network, or the smallest one around it that holds the needs."""
    try:
        carve(network, needs)
    except SubnetsDoNotFitError as refusal:
        assume(refusal.smallest is not None)
        return network.supernet(new_prefix=refusal.smallest)
    return network


@given(networks(), needs_of("abc"))
def test_subnets_hold_what_was_wanted_inside_the_network_without_overlap(
    network: IPv4Network, needs: list[Need]
) -> None:
    network = large_enough(network, needs)

    subnets = carve(network, needs)

    cidrs = [IPv4Network(subnet.cidr) for subnet in subnets]
    assert all(cidr.subnet_of(network) and 16 <= cidr.prefixlen <= 28 for cidr in cidrs)
    assert not any(one.overlaps(other) for one, other in combinations(cidrs, 2))
    assert sum(subnet.addresses for subnet in subnets) == sum(each.nodes * each.interfaces for each in needs)
    assert all(subnet.addresses <= IPv4Network(subnet.cidr).num_addresses - 5 for subnet in subnets)
    assert {(subnet.zone, subnet.kind) for subnet in subnets} == {(each.zone, each.kind) for each in needs}


@given(networks(), needs_of("abc"), needs_of("xyz"))
def test_an_added_zone_moves_no_existing_subnet(network: IPv4Network, before: list[Need], zone: list[Need]) -> None:
    network = large_enough(network, [*before, *zone])

    narrower, wider = carve(network, before), carve(network, [*before, *zone])

    assert wider[: len(narrower)] == narrower


@given(networks(), needs_of("abc", largest=60), st.data())
def test_growth_within_a_subnets_capacity_moves_nothing(
    network: IPv4Network, needs: list[Need], data: st.DataObject
) -> None:
    network = large_enough(network, needs)
    small = carve(network, needs)
    grown = data.draw(st.sampled_from(small))
    more = need(grown.zone, grown.kind, data.draw(st.integers(0, grown.capacity - grown.addresses)))

    large = carve(network, [*needs, more])

    assert [subnet.cidr for subnet in large] == [subnet.cidr for subnet in small]


@given(networks(), needs_of("abc", largest=3000))
def test_a_refusal_names_the_smallest_network_that_holds_all(network: IPv4Network, needs: list[Need]) -> None:
    try:
        carve(network, needs)
    except SubnetsDoNotFitError as refusal:
        smallest = refusal.smallest
    else:
        assume(False)
        return

    if smallest is None:
        with pytest.raises(SubnetsDoNotFitError):
            carve(network.supernet(new_prefix=16), needs)
    else:
        carve(network.supernet(new_prefix=smallest), needs)
        for prefix in range(smallest + 1, network.prefixlen):
            with pytest.raises(SubnetsDoNotFitError):
                carve(network.supernet(new_prefix=prefix), needs)


@given(st.lists(st.integers(20, 28), min_size=1, max_size=40))
def test_no_space_is_lost_whatever_the_order_of_sizes(prefixes: list[int]) -> None:
    needs = [need(f"z{i}", "private", 2 ** (32 - prefix) - 5) for i, prefix in enumerate(prefixes)]
    total = sum(2 ** (32 - prefix) for prefix in prefixes)
    network = IPv4Network("10.0.0.0/20")

    fits = total <= network.num_addresses

    if fits:
        assert len(carve(network, needs)) == len(needs)
    else:
        with pytest.raises(SubnetsDoNotFitError):
            carve(network, needs)


def test_a_large_network_gives_every_subnet_room_to_grow() -> None:
    subnets = carve(IPv4Network("10.40.0.0/16"), zone_needs("us-east-1d"))

    assert [subnet.cidr for subnet in subnets] == ["10.40.0.0/24", "10.40.1.0/24", "10.40.2.0/24"]


def test_the_smallest_vpc_holds_one_subnet_of_eleven_addresses() -> None:
    (subnet,) = carve(IPv4Network("10.0.0.0/28"), [need("a", "private", 11)])

    assert (subnet.cidr, subnet.capacity) == ("10.0.0.0/28", 11)


def test_the_five_reserved_addresses_count() -> None:
    assert carve(IPv4Network("10.0.0.0/24"), [need("a", "fabric", 27)])[0].cidr == "10.0.0.0/27"
    assert carve(IPv4Network("10.0.0.0/24"), [need("a", "fabric", 28)])[0].cidr == "10.0.0.0/26"


def test_interfaces_with_an_address_multiply() -> None:
    assert carve(IPv4Network("10.0.0.0/16"), [need("a", "fabric", 64, interfaces=8)])[0].cidr == "10.0.0.0/22"


def test_groups_of_one_zone_and_kind_share_a_subnet() -> None:
    (subnet,) = carve(IPv4Network("10.0.0.0/20"), [need("a", "fabric", 20), need("a", "fabric", 30)])

    assert (subnet.addresses, subnet.cidr) == (50, "10.0.0.0/26")


def test_a_later_small_subnet_fills_the_gap_before_a_large_one() -> None:
    needs = [need("a", "private", 11), need("a", "fabric", 100), need("b", "private", 11)]

    subnets = carve(IPv4Network("10.0.0.0/24"), needs)

    assert [subnet.cidr for subnet in subnets] == ["10.0.0.0/28", "10.0.0.128/25", "10.0.0.16/28"]


@pytest.mark.parametrize(("cidr", "nearest"), [("10.0.0.0/8", 16), ("10.0.0.0/15", 16), ("10.0.0.0/29", 28)])
def test_a_network_that_aws_makes_no_vpc_of_is_refused(cidr: str, nearest: int) -> None:
    with pytest.raises(SubnetsDoNotFitError, match=f"the nearest is a /{nearest}") as refusal:
        carve(IPv4Network(cidr), zone_needs("a"))

    assert refusal.value.smallest == nearest


def test_a_refusal_says_what_does_not_fit_and_what_would() -> None:
    with pytest.raises(SubnetsDoNotFitError) as refusal:
        carve(IPv4Network("10.40.0.64/26"), zone_needs("us-east-1a", nodes=100))

    assert str(refusal.value) == (
        "10.40.0.64/26 has no room for the fabric subnet of us-east-1a (100 addresses, a /25); "
        "the smallest network that holds all is a /24: 10.40.0.0/24"
    )


def test_a_subnet_larger_than_any_is_refused_whatever_the_network() -> None:
    with pytest.raises(SubnetsDoNotFitError, match="at most, with 65531 addresses") as refusal:
        carve(IPv4Network("10.0.0.0/16"), [need("a", "fabric", 65_532)])

    assert refusal.value.smallest is None
