"""Every way into a network that a resource opens, whatever form it is written in.

Source: EC2 API, IpPermission and NetworkAclEntry: protocol -1 is all traffic; 6 is TCP; a prefix list stands for any
number of networks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from infra.policy.networks import ALL_PORTS, Network, network_of
from infra.policy.rule import Resource
from infra.policy.wire import items, nested, number, true

SECURITY_GROUP = "aws:ec2/securityGroup:SecurityGroup"
DEFAULT_GROUP = "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup"
GROUP_RULE = "aws:ec2/securityGroupRule:SecurityGroupRule"
INGRESS_RULE = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
GROUP_FORMS = (SECURITY_GROUP, DEFAULT_GROUP, GROUP_RULE, INGRESS_RULE)

NETWORK_ACL = "aws:ec2/networkAcl:NetworkAcl"
DEFAULT_ACL = "aws:ec2/defaultNetworkAcl:DefaultNetworkAcl"
ACL_RULE = "aws:ec2/networkAclRule:NetworkAclRule"
ACL_FORMS = (NETWORK_ACL, DEFAULT_ACL, ACL_RULE)

WITH_LISTS = (SECURITY_GROUP, DEFAULT_GROUP, NETWORK_ACL, DEFAULT_ACL)  # their openings are a list inside them
CIDR_KEYS = ("cidrBlocks", "ipv6CidrBlocks", "cidrIpv4", "cidrIpv6", "cidrBlock", "ipv6CidrBlock")
PREFIX_LIST_KEYS = ("prefixListIds", "prefixListId")
PROTOCOL_KEYS = ("protocol", "ipProtocol")
ACTION_KEYS = ("action", "ruleAction")  # of a network ACL


@dataclass(frozen=True)
class Opening:
    """One way in, as it is written. ports: the first and the last one."""

    path: str
    ports: tuple[int, int]
    cidrs: tuple[Any, ...]
    prefix_lists: tuple[Any, ...]

    def covers(self, port: int) -> bool:
        return self.ports[0] <= port <= self.ports[1]

    def networks(self) -> Iterator[Network]:
        """Those that can be read."""
        return (network for cidr in self.cidrs if (network := network_of(cidr)) is not None)


def openings(resource: Resource, *, udp: bool = False) -> Iterator[Opening]:
    """What the resource lets in over TCP, and over UDP where that is meant; what cannot be read may be anything."""
    inputs = resource.inputs
    if resource.type in WITH_LISTS:
        for (path, inline), raw in zip(nested(inputs, "ingress"), items(inputs.get("ingress")), strict=True):
            if not isinstance(raw, Mapping):
                yield Opening(path, ALL_PORTS, (raw,), ())
            else:
                yield from _opening(path, inline, udp=udp)
    elif inputs.get("type") != "egress" and not true(inputs.get("egress")):
        yield from _opening("", inputs, udp=udp)


def _opening(path: str, inputs: Mapping[str, Any], *, udp: bool) -> Iterator[Opening]:
    protocol = next((inputs[key] for key in PROTOCOL_KEYS if key in inputs), None)
    by_udp = udp and (number(protocol) == 17 or str(protocol).lower() == "udp")
    ports = _tcp_ports("tcp" if by_udp else protocol, inputs)
    if ports is None or any(inputs.get(key) == "deny" for key in ACTION_KEYS):
        return
    cidrs = tuple(cidr for key in CIDR_KEYS for cidr in items(inputs.get(key)))
    yield Opening(path, ports, cidrs, tuple(one for key in PREFIX_LIST_KEYS for one in items(inputs.get(key))))


def _tcp_ports(protocol: Any, ports: Mapping[str, Any]) -> tuple[int, int] | None:
    """The ports that are meant, None where TCP is not; what cannot be read may mean all of them."""
    if isinstance(protocol, str) and protocol.lower() in ("udp", "icmp", "icmpv6"):
        return None
    if number(protocol) not in (None, -1, 6):
        return None
    if number(protocol) == -1 or str(protocol).lower() == "all":
        return ALL_PORTS
    first, last = number(ports.get("fromPort")), number(ports.get("toPort"))
    return ALL_PORTS if first is None or last is None or first == -1 else (first, last)
