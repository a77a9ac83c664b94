"""SSH is for the networks that people come from, never for the world, whatever form the rule has; nor is the rest.

Sources: CIS AWS Foundations Benchmark, "no security groups" and "no Network ACLs allow ingress from 0.0.0.0/0 [and
::/0] to remote server administration ports".
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network

from infra.clouds.aws.policy.network.openings import ACL_FORMS, GROUP_FORMS, Opening, openings
from infra.clouds.aws.policy.types import EKS_CLUSTER
from infra.plan.firewall import SSH_PORT
from infra.policy.networks import MOST_IPV4_ADDRESSES, WEB_PORTS, Network, addresses, network_of, too_wide
from infra.policy.rule import Resource, Stack, Violation, rule, stack_rule
from infra.policy.wire import false, items, mapping


@stack_rule("ssh-from-the-world")
def ssh_from_the_world(stack: Stack) -> Iterator[tuple[Resource, str, str]]:
    """SSH is open to networks that somebody named; halves of the world in two rules are the world."""
    for forms in (GROUP_FORMS, ACL_FORMS):
        pairs = [(each, opening) for each in stack.of(*forms) for opening in openings(each) if opening.covers(SSH_PORT)]
        everything = [network for _, opening in pairs for network in opening.networks()]
        wide = tuple(too_wide(everything))
        for resource, opening in pairs:
            yield from ((resource, opening.path, message) for message in _complaints(opening, wide))
        total = addresses(everything)
        if total > MOST_IPV4_ADDRESSES and not wide:
            message = f"port {SSH_PORT} is open to {total} addresses in all; name your networks"
            yield from ((resource, opening.path, message) for resource, opening in pairs if any(opening.networks()))


@rule("only-web-from-the-world", *GROUP_FORMS)
def only_web_from_the_world(resource: Resource) -> Iterator[Violation]:
    """The world reaches web ports at most: notebooks, dashboards, stores and file servers ask nobody who he is."""
    for opening in openings(resource, udp=True):
        if _of_the_web(opening) or opening.covers(SSH_PORT):
            continue
        first, last = opening.ports
        ports = f"port {first} is" if first == last else f"ports {first} to {last} are"
        if (wide := next(too_wide(list(opening.networks())), None)) is not None:
            yield opening.path, f"{ports} open to {wide}; only 80 and 443 may be open to so many"
        for prefix_list in opening.prefix_lists:
            yield opening.path, f"{ports} open to prefix list {prefix_list}, which may hold any network"


@stack_rule("few-addresses-together")
def few_addresses_together(stack: Stack) -> Iterator[tuple[Resource, str, str]]:
    """Networks that are small one by one are the world together, in however many rules they stand."""
    each = [(group, opening) for group in stack.of(*GROUP_FORMS) for opening in openings(group, udp=True)]
    pairs = [
        (group, opening)
        for group, opening in each
        if not _of_the_web(opening) and opening.ports != (SSH_PORT, SSH_PORT)
    ]
    total = addresses(network for _, opening in pairs for network in opening.networks())
    if total > MOST_IPV4_ADDRESSES:
        for group, opening in pairs:
            if any(opening.networks()):
                yield (
                    group,
                    opening.path,
                    f"ports beside 80 and 443 are open to {total} addresses in all; name your networks",
                )
    for cluster in stack.of(EKS_CLUSTER):
        network = mapping(cluster.inputs.get("vpcConfig"))
        cidrs = map(network_of, items(network.get("publicAccessCidrs")))
        total = addresses(cidr for cidr in cidrs if cidr is not None)
        if total > MOST_IPV4_ADDRESSES and not false(network.get("endpointPublicAccess", True)):
            yield cluster, "vpcConfig.publicAccessCidrs", f"names {total} addresses in all; name your networks"


def _of_the_web(opening: Opening) -> bool:
    first, last = opening.ports
    return last - first < len(WEB_PORTS) and set(range(first, last + 1)) <= WEB_PORTS


def _complaints(opening: Opening, wide: tuple[Network, ...]) -> Iterator[str]:
    for cidr in opening.cidrs:
        network = network_of(cidr)
        if network is None:
            yield f"port {SSH_PORT} is open to {cidr!r}, which cannot be read; write a CIDR"
        elif whole := next((one for one in wide if _within(network, one)), None):
            yield f"port {SSH_PORT} is open to {network}{_together(network, whole)}; name your networks"
    for prefix_list in opening.prefix_lists:
        yield f"port {SSH_PORT} is open to prefix list {prefix_list}, which may hold any network"


def _within(network: Network, whole: Network) -> bool:
    if isinstance(network, IPv4Network):
        return isinstance(whole, IPv4Network) and network.subnet_of(whole)
    return isinstance(whole, IPv6Network) and network.subnet_of(whole)


def _together(network: Network, whole: Network) -> str:
    return "" if network == whole else f", with its neighbours to {whole}"
