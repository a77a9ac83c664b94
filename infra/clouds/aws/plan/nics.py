"""The network cards of a node, by rule from the numbers that EC2 publishes of its type; no type is named here.

Sources: EC2 User Guide, "Maximize network bandwidth on Amazon EC2 instances with multiple network cards" (the rule, and
the two layouts of P5); EC2 API, DescribeInstanceTypes NetworkInfo (the numbers) and
InstanceNetworkInterfaceSpecification (a public address only with a single interface).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from infra.plan.layout import NoFabricError

InterfaceType = Literal["interface", "efa", "efa-only"]
Layout = Literal["efficient", "bandwidth"]
Slot = tuple[int, int, InterfaceType]  # card, device, type

PRIMARY: Slot = (0, 0, "interface")

# On a later card the User Guide gives the efa-only interface device 0 and the IP interface device 1. ParallelCluster
# gives the former 1; both are launched in the field, and only the guide's way leaves 1 free for the IP interface.
EFA_DEVICE_INDEX, IP_DEVICE_INDEX = 0, 1

MOST_IP_CARDS = 8  # as on P5: every fourth of its 32 cards, together up to 800 Gbit/s of IP traffic


@dataclass(frozen=True, kw_only=True)
class NetworkCards:
    """What EC2 says of a type's network.

    cards: MaximumNetworkCards. interfaces_per_card: the least MaximumNetworkInterfaces of its cards.
    efa_interfaces: MaximumEfaInterfaces, 0 without EFA. first_card_efa: card 0's InterfaceTypes contain efa-only.
    """

    cards: int
    interfaces_per_card: int
    efa_interfaces: int
    first_card_efa: bool


@dataclass(frozen=True, kw_only=True)
class Interface:
    """One network interface to declare.

    An efa-only one has no address. Two types may share a launch template only where their interfaces are equal.
    """

    network_card_index: int
    device_index: int
    interface_type: InterfaceType
    primary: bool
    public_ip_allowed: bool


def interfaces(network: NetworkCards, *, fabric: bool, layout: Layout = "efficient") -> tuple[Interface, ...]:
    """The interfaces of a node, primary first.

    efficient: one IP interface, and EFA on every card that has it: one private address a node. bandwidth: IP interfaces
    on up to eight evenly spread cards as well, where a card holds two; AWS documents it for P5's 32 cards, for others
    it is deduced, and each of them needs a route of its own on the node. Without `fabric`: one IP interface, no EFA.

    Raises NoFabricError.
    """
    slots = list(_efa_slots(network, layout)) if fabric else [PRIMARY]
    return tuple(
        Interface(
            network_card_index=card,
            device_index=device,
            interface_type=kind,
            primary=(card, device) == (0, 0),
            public_ip_allowed=len(slots) == 1,
        )
        for card, device, kind in slots
    )


def addresses_per_node(of: Sequence[Interface]) -> int:
    """How many private addresses a node with these interfaces takes from its subnet."""
    return sum(interface.interface_type != "efa-only" for interface in of)


def _efa_slots(network: NetworkCards, layout: Layout) -> Iterator[Slot]:
    """Every interface of an EFA node."""
    _check_efa(network)
    if network.first_card_efa and network.interfaces_per_card == 1:
        yield 0, 0, "efa"  # the primary cannot be efa-only: where the card holds nothing beside it, it is both
    else:
        yield PRIMARY
    if network.first_card_efa and network.interfaces_per_card > 1:
        yield 0, 1, "efa-only"
    step = -(-network.cards // MOST_IP_CARDS)
    for card in range(1, network.cards):
        yield card, EFA_DEVICE_INDEX, "efa-only"
        if layout == "bandwidth" and card % step == 0 and network.interfaces_per_card > 1:
            yield card, IP_DEVICE_INDEX, "interface"


def _check_efa(network: NetworkCards) -> None:
    if network.efa_interfaces == 0:
        raise NoFabricError(
            "the fabric is required but this instance type has no EFA; choose a type with EFA, or drop `fabric`"
        )
    able = network.cards - (not network.first_card_efa)
    if network.efa_interfaces != able:
        raise NoFabricError(
            f"this instance type has {network.efa_interfaces} EFA interfaces for {able} cards that may carry one: "
            "these numbers do not tell which card has it; choose another type, or drop `fabric`"
        )
