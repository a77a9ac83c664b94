"""The address plan of a VPC: which zone has which subnets, and how large, as a pure function of what must fit.

Sources: Amazon VPC User Guide, "VPC CIDR blocks" and "Subnet CIDR blocks"; EC2 API, CreateSubnet: a VPC and a subnet
have a prefix of /16 to /28, and AWS keeps the first four addresses and the last one of every subnet for itself. The
CIDR of a subnet cannot be changed once it exists: moving one replaces everything in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Literal

from infra.plan.layout import LayoutError

Kind = Literal["public", "private", "fabric"]
Place = tuple[str, Kind]

LARGEST_PREFIX, SMALLEST_PREFIX = 16, 28
RESERVED_ADDRESSES = 5
ROOM_PREFIX_BITS = 8  # every subnet has at least 1/256 of the VPC, so that groups grow without moving anything


class SubnetsDoNotFitError(LayoutError):
    """The network is too small for the subnets.

    smallest: the prefix of the smallest network that can, None where no VPC can.
    """

    rule = "network-holds-the-subnets"

    def __init__(self, message: str, smallest: int | None) -> None:
        super().__init__(message)
        self.smallest = smallest


@dataclass(frozen=True, kw_only=True)
class Need:
    """Addresses required in one subnet: a group of nodes, the gateways or the endpoints of a zone.

    interfaces: those of one node that have an address, which an efa-only one has not (`cards.addresses_per_node`).
    kind: public has a route from the internet, private only one to it; fabric is the private subnet of EFA nodes, which
    must share one subnet. Needs of the same zone and kind share a subnet.
    """

    zone: str
    kind: Kind
    nodes: int
    interfaces: int = 1

    @property
    def addresses(self) -> int:
        return self.nodes * self.interfaces


@dataclass(frozen=True, kw_only=True)
class Subnet:
    """A subnet to declare. addresses: how many are required; capacity: how many it has."""

    zone: str
    kind: Kind
    cidr: str
    addresses: int

    @property
    def capacity(self) -> int:
        return _capacity(IPv4Network(self.cidr).prefixlen)


def carve(network: IPv4Network, needs: Sequence[Need]) -> tuple[Subnet, ...]:
    """The subnets of `network`, in the order in which the needs first name them.

    Each takes the first free block of its size, so what is appended (a zone, a kind of subnet) moves nothing that stood
    there before, and growth within a subnet's capacity moves nothing at all. No space is lost: the free blocks all
    differ in size, smallest first, so a subnet fits exactly if the addresses left are enough for it.

    Raises SubnetsDoNotFitError, naming the subnet that does not fit and the smallest network that holds all.
    """
    if not LARGEST_PREFIX <= network.prefixlen <= SMALLEST_PREFIX:
        nearest = min(max(network.prefixlen, LARGEST_PREFIX), SMALLEST_PREFIX)
        raise SubnetsDoNotFitError(
            f"{network} cannot be a VPC, which is a /16 to a /28; the nearest is a /{nearest}", nearest
        )
    sizes = _sizes(needs)
    free = [network]
    subnets: list[Subnet] = []
    for (zone, kind), addresses in sizes.items():
        block = _take(free, _prefix(network.prefixlen, addresses))
        if block is None:
            raise _no_room(network, (zone, kind), sizes)
        subnets.append(Subnet(zone=zone, kind=kind, cidr=str(block), addresses=addresses))
    return tuple(subnets)


def _sizes(needs: Sequence[Need]) -> Mapping[Place, int]:
    """How many addresses each subnet must have."""
    sizes: dict[Place, int] = {}
    for need in needs:
        sizes[need.zone, need.kind] = sizes.get((need.zone, need.kind), 0) + need.addresses
    return sizes


def _capacity(prefix: int) -> int:
    return 2 ** (32 - prefix) - RESERVED_ADDRESSES


def _prefix(network_prefix: int, addresses: int) -> int:
    """The prefix of the smallest subnet that holds so many addresses in a network of that prefix."""
    needed = 32 - (addresses + RESERVED_ADDRESSES - 1).bit_length()
    return min(needed, network_prefix + ROOM_PREFIX_BITS, SMALLEST_PREFIX)


def _take(free: list[IPv4Network], prefix: int) -> IPv4Network | None:
    """The first block of that prefix out of `free`, whose blocks ascend in address and in size; None without one."""
    for index, block in enumerate(free):
        if block.prefixlen <= prefix:
            taken = next(block.subnets(new_prefix=prefix))
            free[index : index + 1] = sorted(block.address_exclude(taken))
            return taken
    return None


def _no_room(network: IPv4Network, place: Place, sizes: Mapping[Place, int]) -> SubnetsDoNotFitError:
    zone, kind = place
    prefix = _prefix(network.prefixlen, sizes[place])
    what = f"{network} has no room for the {kind} subnet of {zone} ({sizes[place]} addresses, a /{prefix})"
    if prefix < LARGEST_PREFIX:
        return SubnetsDoNotFitError(
            f"{what}; a subnet is a /16 at most, with {_capacity(LARGEST_PREFIX)} addresses", None
        )
    smallest = next((p for p in range(network.prefixlen - 1, LARGEST_PREFIX - 1, -1) if _holds(p, sizes)), None)
    if smallest is None:
        return SubnetsDoNotFitError(
            f"{what}, and no VPC, a /16 at most, holds all: fewer nodes or zones, or a second cluster", None
        )
    larger = network.supernet(new_prefix=smallest)
    return SubnetsDoNotFitError(f"{what}; the smallest network that holds all is a /{smallest}: {larger}", smallest)


def _holds(prefix: int, sizes: Mapping[Place, int]) -> bool:
    return sum(2 ** (32 - _prefix(prefix, addresses)) for addresses in sizes.values()) <= 2 ** (32 - prefix)
