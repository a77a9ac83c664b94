"""Rules about nodes on this computer."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network

from infra.checks.rule import Violation, rule
from infra.clouds.local.plan import LocalPlan
from infra.clouds.local.spec import LocalSpec
from infra.plan.addresses import BLOCK, FIRST_HOST

LOOPBACK = IPv4Network("127.0.0.0/8")  # RFC 1122, 3.2.1.3
PRIVATE = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")))  # RFC 1918, 3
UNPRIVILEGED_PORT = 1024  # ip(7): net.ipv4.ip_unprivileged_port_start


@rule("process-nodes-are-on-loopback", LocalPlan)
def process_nodes_are_on_loopback(_: LocalSpec, plan: LocalPlan) -> Iterator[Violation]:
    """A process node's SSH server must be unreachable for other computers: only loopback never leaves this one."""
    if plan.isolation == "process" and not IPv4Network(plan.network.cidr).subnet_of(LOOPBACK):
        yield "cluster.network.cidr", f"{plan.network.cidr} must lie in {LOOPBACK} for isolation process"


@rule("machine-network-is-private", LocalPlan)
def machine_network_is_private(_: LocalSpec, plan: LocalPlan) -> Iterator[Violation]:
    """A bridge on public addresses would make their owners unreachable; loopback cannot be bridged."""
    network = IPv4Network(plan.network.cidr)
    if plan.isolation == "machine" and not any(network.subnet_of(private) for private in PRIVATE):
        ranges = ", ".join(map(str, PRIVATE))
        yield "cluster.network.cidr", f"{network} must lie in one of {ranges} for isolation machine"


@rule("network-has-room", LocalPlan)
def network_has_room(_: LocalSpec, plan: LocalPlan) -> Iterator[Violation]:
    """Every node needs an address of its own."""
    for i, group in enumerate(plan.groups):
        if len(group.nodes) < group.count:
            room = f"{plan.network.cidr} has room for {len(group.nodes)} of {group.count} nodes"
            yield (
                f"cluster.nodes[{i}].count",
                f"{room}: groups take blocks of {BLOCK} addresses from host .{FIRST_HOST} on",
            )


@rule("process-port-needs-no-root", LocalPlan)
def process_port_needs_no_root(spec: LocalSpec, plan: LocalPlan) -> Iterator[Violation]:
    """A plain user cannot listen below port 1024 (ip(7))."""
    if plan.isolation == "process" and spec.network.port < UNPRIVILEGED_PORT:
        remedy = f"for isolation process take one from {UNPRIVILEGED_PORT} on"
        yield "cluster.network.port", f"{spec.network.port} needs root; {remedy}"


@rule("gateway-is-no-node", LocalPlan)
def gateway_is_no_node(_: LocalSpec, plan: LocalPlan) -> Iterator[Violation]:
    """On the machines' bridge the gateway's address is this computer's."""
    if plan.isolation != "machine":
        return
    for i, group in enumerate(plan.groups):
        for a, node in enumerate(group.nodes):
            if node.address == plan.network.gateway:
                yield f"cluster.nodes[{i}].addresses[{a}]", f"{node.address} is this computer's own address there"
