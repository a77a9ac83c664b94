"""Who may speak to whom, as data: one row is one rule of a security group.

Sources: EC2 User Guide, "Get started with EFA and NCCL" (an EFA group needs all traffic in *and* out with itself as the
peer; an open egress rule does not replace the second); EC2 API, IpRange (what a rule's description may hold).
Security groups are stateful: an answer needs no rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Network, IPv6Network, collapse_addresses
from typing import Literal

from infra.plan.layout import LayoutError

Network = IPv4Network | IPv6Network
Direction = Literal["ingress", "egress"]

SSH_PORT = 22
WIDEST_PREFIX = 8  # 10.0.0.0/8, fd00::/8: nobody's own network is wider
WEB_PORTS = {80: "package mirrors", 443: "packages, object storage and the API of the cloud"}


class OpenToTheWorldError(LayoutError):
    """SSH would be open to networks too wide to be intended."""

    rule = "ssh-is-not-open-to-the-world"


@dataclass(frozen=True, kw_only=True)
class FirewallRule:
    """One rule of the security group `group`; the peer is another group (or itself) or a CIDR, never both.

    protocol: "-1" is all traffic, on all ports (`port` is None). last_port: of a range that begins with `port`, None
    for one port. reason: fits a rule's description at AWS.
    """

    group: str
    direction: Direction
    protocol: Literal["tcp", "-1"]
    port: int | None
    last_port: int | None = None
    peer_group: str | None = None
    peer_cidr: str | None = None
    reason: str


def access(
    *, ssh_from: Sequence[Network], head: str | None, nodes: Sequence[str], fabric: Sequence[str]
) -> tuple[FirewallRule, ...]:
    """The rules of a cluster's security groups, and nothing beside them.

    ssh_from: the networks that people come from, none where they come through Session Manager. head: the group of the
    login machine; without one, people log in to the nodes. nodes: the groups of the nodes. fabric: those of them whose
    nodes speak freely among themselves.

    Raises OpenToTheWorldError.
    """
    refuse_the_world(ssh_from)
    doors = nodes if head is None else (head,)
    return (
        *(
            _ssh(door, "ingress", "people log in from here", peer_cidr=str(network))
            for door in doors
            for network in dict.fromkeys(ssh_from)
        ),
        *(rule for group in nodes if head is not None for rule in _through_head(head, group)),
        *(rule for group in fabric for rule in _among_themselves(group)),
    )


def outbound(groups: Sequence[str]) -> tuple[FirewallRule, ...]:
    """What a machine needs of the internet to become a node: web traffic out, nothing else."""
    return tuple(
        FirewallRule(group=group, direction="egress", protocol="tcp", port=port, peer_cidr="0.0.0.0/0", reason=reason)
        for group in groups
        for port, reason in WEB_PORTS.items()
    )


def both_ways(
    client: str, server: str, port: int | None, last: int | None = None, *, reason: str
) -> tuple[FirewallRule, FirewallRule]:
    """What the client may send, and the server receive."""
    taken = received(client, server, port, last, reason=reason)
    return replace(taken, group=client, direction="egress", peer_group=server), taken


def received(client: str, server: str, port: int | None, last: int | None = None, *, reason: str) -> FirewallRule:
    """What a group takes from another one; without a port anything, with `last` a range of ports."""
    return FirewallRule(
        group=server,
        direction="ingress",
        protocol="-1" if port is None else "tcp",
        port=port,
        last_port=last,
        peer_group=client,
        reason=reason,
    )


def refuse_the_world(networks: Sequence[Network]) -> None:
    """Raise OpenToTheWorldError if SSH from these networks would be from `too_wide` ones."""
    for whole in too_wide(networks):
        raise OpenToTheWorldError(
            f"SSH would be open to {whole}; name the networks that people come from, each no wider than a /8"
        )


def too_wide(networks: Sequence[Network]) -> Iterator[Network]:
    """Those of them, neighbours taken together, that are wider than a /8.

    The halves of the world are the world, and so is all of it but one address.
    """
    v4 = collapse_addresses(network for network in networks if isinstance(network, IPv4Network))
    v6 = collapse_addresses(network for network in networks if isinstance(network, IPv6Network))
    yield from (whole for whole in (*v4, *v6) if whole.prefixlen < WIDEST_PREFIX)


def _ssh(
    group: str, direction: Direction, reason: str, *, peer_group: str | None = None, peer_cidr: str | None = None
) -> FirewallRule:
    return FirewallRule(
        group=group,
        direction=direction,
        protocol="tcp",
        port=SSH_PORT,
        peer_group=peer_group,
        peer_cidr=peer_cidr,
        reason=reason,
    )


def _through_head(head: str, group: str) -> tuple[FirewallRule, ...]:
    reason = "the head reaches its nodes"
    return _ssh(head, "egress", reason, peer_group=group), _ssh(group, "ingress", reason, peer_group=head)


def _among_themselves(group: str) -> Iterator[FirewallRule]:
    directions: dict[Direction, str] = {"ingress": "from", "egress": "to"}
    for direction, word in directions.items():
        yield FirewallRule(
            group=group,
            direction=direction,
            protocol="-1",
            port=None,
            peer_group=group,
            reason=f"fabric: all traffic {word} the group itself",
        )
