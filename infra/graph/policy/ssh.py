"""SSH is for the networks that people come from, never for the world, whatever form the rule has.

Source: EC2 API, IpPermission: protocol -1 is all traffic; 6 is TCP; a prefix list stands for any number of networks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network
from typing import Any

from infra.graph.policy.rule import Resource, Stack, Violation, rule
from infra.graph.policy.wire import items, nested, number
from infra.plan.firewall import SSH_PORT, WIDEST_PREFIX

SECURITY_GROUP = "aws:ec2/securityGroup:SecurityGroup"
DEFAULT_GROUP = "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup"
GROUP_RULE = "aws:ec2/securityGroupRule:SecurityGroupRule"
INGRESS_RULE = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
FORMS = (SECURITY_GROUP, DEFAULT_GROUP, GROUP_RULE, INGRESS_RULE)

MOST_IPV4_ADDRESSES = 4 * 2**24  # of all named networks together: four /8
GLOBAL_IPV6, WIDEST_GLOBAL_IPV6_PREFIX = IPv6Network("2000::/3"), 16  # no organisation holds more of the internet

CIDR_KEYS = ("cidrBlocks", "ipv6CidrBlocks", "cidrIpv4", "cidrIpv6")
PREFIX_LIST_KEYS = ("prefixListIds", "prefixListId")

Network = IPv4Network | IPv6Network


@dataclass(frozen=True)
class Opening:
    """One way in on the SSH port, as it is written."""

    path: str
    cidrs: tuple[Any, ...]
    prefix_lists: tuple[Any, ...]

    def networks(self) -> Iterator[Network]:
        """Those that can be read."""
        for cidr in self.cidrs:
            if (network := _network(cidr)) is not None:
                yield network


@rule("ssh-from-the-world", *FORMS)
def ssh_from_the_world(resource: Resource, stack: Stack) -> Iterator[Violation]:
    """Halves of the world in two rules are the world: all openings of the stack are added up."""
    everything = [network for other in stack.of(*FORMS) for way in _openings(other) for network in way.networks()]
    wide = tuple(_too_wide(everything))
    for way in _openings(resource):
        for cidr in way.cidrs:
            network = _network(cidr)
            if network is None:
                yield way.path, f"port {SSH_PORT} is open to {cidr!r}, which cannot be read; write a CIDR"
            elif whole := next((one for one in wide if _within(network, one)), None):
                yield way.path, f"port {SSH_PORT} is open to {network}{_together(network, whole)}; name your networks"
        for prefix_list in way.prefix_lists:
            yield way.path, f"port {SSH_PORT} is open to prefix list {prefix_list}, which may hold any network"
    total = sum(network.num_addresses for network in collapse_addresses(n for n in everything if n.version == 4))
    if total > MOST_IPV4_ADDRESSES and not wide and any(list(way.networks()) for way in _openings(resource)):
        yield "", f"port {SSH_PORT} is open to {total} addresses in all; name your networks"


def _openings(resource: Resource) -> Iterator[Opening]:
    inputs = resource.inputs
    if resource.type in (SECURITY_GROUP, DEFAULT_GROUP):
        for (path, inline), raw in zip(nested(inputs, "ingress"), items(inputs.get("ingress")), strict=True):
            if not isinstance(raw, Mapping):
                yield Opening(path, (raw,), ())
            elif _covers_ssh(inline.get("protocol"), inline):
                yield _opening(path, inline)
    elif resource.type == INGRESS_RULE:
        if _covers_ssh(inputs.get("ipProtocol"), inputs):
            yield _opening("", inputs)
    elif inputs.get("type") != "egress" and _covers_ssh(inputs.get("protocol"), inputs):
        yield _opening("", inputs)


def _opening(path: str, inputs: Mapping[str, Any]) -> Opening:
    cidrs = tuple(cidr for key in CIDR_KEYS for cidr in items(inputs.get(key)))
    return Opening(path, cidrs, tuple(one for key in PREFIX_LIST_KEYS for one in items(inputs.get(key))))


def _covers_ssh(protocol: Any, ports: Mapping[str, Any]) -> bool:
    """Whether the SSH port is meant; what cannot be read may mean it."""
    if isinstance(protocol, str) and protocol.lower() in ("udp", "icmp", "icmpv6"):
        return False
    if number(protocol) not in (None, -1, 6):
        return False
    if number(protocol) == -1 or str(protocol).lower() == "all":
        return True
    first, last = number(ports.get("fromPort")), number(ports.get("toPort"))
    if first is None or last is None or first == -1:
        return True
    return first <= SSH_PORT <= last


def _network(cidr: Any) -> Network | None:
    try:
        return ip_network(cidr, strict=False) if isinstance(cidr, str) else None
    except ValueError:
        return None


def _too_wide(networks: list[Network]) -> Iterator[Network]:
    """The networks, neighbours taken together, that nobody can mean by name."""
    v4 = collapse_addresses(network for network in networks if isinstance(network, IPv4Network))
    v6 = collapse_addresses(network for network in networks if isinstance(network, IPv6Network))
    yield from (network for network in v4 if network.prefixlen < WIDEST_PREFIX)
    for network in v6:
        widest = WIDEST_GLOBAL_IPV6_PREFIX if network.subnet_of(GLOBAL_IPV6) else WIDEST_PREFIX
        if network.prefixlen < widest:
            yield network


def _within(network: Network, whole: Network) -> bool:
    if isinstance(network, IPv4Network):
        return isinstance(whole, IPv4Network) and network.subnet_of(whole)
    return isinstance(whole, IPv6Network) and network.subnet_of(whole)


def _together(network: Network, whole: Network) -> str:
    return "" if network == whole else f", with its neighbours to {whole}"
