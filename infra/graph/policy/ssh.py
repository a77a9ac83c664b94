"""SSH is for the networks that people come from, never for the world, whatever form the rule has.

Sources: CIS AWS Foundations Benchmark, "no security groups" and "no Network ACLs allow ingress from 0.0.0.0/0 [and
::/0] to remote server administration ports".
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network, collapse_addresses

from infra.graph.policy.openings import (
    ACL_FORMS,
    GROUP_FORMS,
    Network,
    Opening,
    network_of,
    openings,
    too_wide,
)
from infra.graph.policy.rule import Resource, Stack, Violation, rule, stack_rule
from infra.plan.firewall import SSH_PORT

MOST_IPV4_ADDRESSES = 4 * 2**24  # of all named networks together: four /8
WEB_PORTS = {80, 443}


@stack_rule("ssh-from-the-world")
def ssh_from_the_world(stack: Stack) -> Iterator[tuple[Resource, str, str]]:
    """SSH is open to networks that somebody named; halves of the world in two rules are the world."""
    for forms in (GROUP_FORMS, ACL_FORMS):
        ways = [(each, way) for each in stack.of(*forms) for way in openings(each) if way.covers(SSH_PORT)]
        everything = [network for _, way in ways for network in way.networks()]
        wide = tuple(too_wide(everything))
        for resource, way in ways:
            yield from ((resource, way.path, message) for message in _complaints(way, wide))
        total = sum(network.num_addresses for network in collapse_addresses(n for n in everything if n.version == 4))
        if total > MOST_IPV4_ADDRESSES and not wide:
            message = f"port {SSH_PORT} is open to {total} addresses in all; name your networks"
            yield from ((resource, way.path, message) for resource, way in ways if any(way.networks()))


@rule("only-web-from-the-world", *GROUP_FORMS)
def only_web_from_the_world(resource: Resource) -> Iterator[Violation]:
    """The world reaches web ports at most: notebooks, dashboards, stores and file servers ask nobody who he is."""
    for way in openings(resource):
        wide = next(too_wide(list(way.networks())), None)
        if (
            wide is not None
            and not way.covers(SSH_PORT)
            and not set(range(way.ports[0], way.ports[1] + 1)) <= WEB_PORTS
        ):
            first, last = way.ports
            ports = f"port {first} is" if first == last else f"ports {first} to {last} are"
            yield way.path, f"{ports} open to {wide}; only 80 and 443 may be open to so many"


def _complaints(way: Opening, wide: tuple[Network, ...]) -> Iterator[str]:
    for cidr in way.cidrs:
        network = network_of(cidr)
        if network is None:
            yield f"port {SSH_PORT} is open to {cidr!r}, which cannot be read; write a CIDR"
        elif whole := next((one for one in wide if _within(network, one)), None):
            yield f"port {SSH_PORT} is open to {network}{_together(network, whole)}; name your networks"
    for prefix_list in way.prefix_lists:
        yield f"port {SSH_PORT} is open to prefix list {prefix_list}, which may hold any network"


def _within(network: Network, whole: Network) -> bool:
    if isinstance(network, IPv4Network):
        return isinstance(whole, IPv4Network) and network.subnet_of(whole)
    return isinstance(whole, IPv6Network) and network.subnet_of(whole)


def _together(network: Network, whole: Network) -> str:
    return "" if network == whole else f", with its neighbours to {whole}"
