"""Which node has which address: a pure function of the stack file, stable while groups grow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from itertools import islice

FIRST_HOST = 11  # the addresses below stay free for gateways and people
BLOCK = 20  # addresses that a group has to itself, so that one group's growth moves no other group


@dataclass(frozen=True, kw_only=True)
class AddressNeed:
    """Addresses for one group: so many, or exactly these."""

    count: int
    given: tuple[IPv4Address, ...] | None = None


def allot(network: IPv4Network, groups: Sequence[AddressNeed]) -> list[tuple[IPv4Address, ...]]:
    """The addresses of each group, in order.

    A group takes whole blocks of 20 from host .11 on, as many as it needs, so its nodes and its neighbours keep their
    addresses while it grows within them. Given addresses are used as they are and left out of every block. Where the
    network ends, the result is shorter than requested.
    """
    taken = {address for group in groups for address in group.given or ()}
    allotted: list[tuple[IPv4Address, ...]] = []
    start = FIRST_HOST
    for group in groups:
        if group.given is not None:
            allotted.append(group.given)
            continue
        addresses = list(islice(_free(network, start, taken), group.count))
        allotted.append(tuple(addresses))
        last = int(addresses[-1]) - int(network.network_address) if addresses else start
        start += BLOCK * -(-(last - start + 1) // BLOCK)
    return allotted


def _free(network: IPv4Network, start: int, taken: set[IPv4Address]) -> Iterator[IPv4Address]:
    """The network's hosts from the one numbered `start`, without its last address (broadcast) and the taken ones."""
    for host in range(start, network.num_addresses - 1):
        address = network.network_address + host
        if address not in taken:
            yield address
