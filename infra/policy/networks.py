"""How wide a network is: which ones are as good as the whole internet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network
from typing import Any

from infra.plan.firewall import WIDEST_PREFIX

ALL_PORTS = (0, 65_535)
GLOBAL_IPV6, WIDEST_GLOBAL_IPV6_PREFIX = IPv6Network("2000::/3"), 16  # no organisation holds more of the internet

MOST_IPV4_ADDRESSES = 4 * 2**24  # of all named networks together: four /8
WEB_PORTS = {80, 443}

Network = IPv4Network | IPv6Network


def network_of(cidr: Any) -> Network | None:
    """None for what is no CIDR, an unknown or a secret among it."""
    try:
        return ip_network(cidr, strict=False) if isinstance(cidr, str) else None
    except ValueError:
        return None


def too_wide(networks: list[Network]) -> Iterator[Network]:
    """The networks, adjacent ones merged, that are too wide to be intended."""
    v4 = collapse_addresses(network for network in networks if isinstance(network, IPv4Network))
    v6 = collapse_addresses(network for network in networks if isinstance(network, IPv6Network))
    yield from (network for network in v4 if network.prefixlen < WIDEST_PREFIX)
    for network in v6:
        widest = WIDEST_GLOBAL_IPV6_PREFIX if network.subnet_of(GLOBAL_IPV6) else WIDEST_PREFIX
        if network.prefixlen < widest:
            yield network


def addresses(networks: Iterable[Network]) -> int:
    """How many addresses of IPv4 there are in networks, each counted once."""
    return sum(each.num_addresses for each in collapse_addresses(n for n in networks if isinstance(n, IPv4Network)))
