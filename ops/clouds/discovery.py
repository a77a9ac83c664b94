"""The current nodes: machines of a cloud with the stack's tags, as nodes of the handover."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

from infra.clouds.tags import ENTRANCE
from infra.handover import HOST, Handover, Node, Store
from ops.clouds.base import Discovered
from ops.nodes import ssh
from ops.nodes.ssh import NodeState

SSH_PORT = 22
HERE = ("pending", "running")  # states of machines that count; others are shutting down


class Machine(Protocol):
    """A machine as its cloud describes it. hostname: its own name. made_by: the engine's id of its fleet or
    group, empty without one. attached: ids of its disks and interfaces, which end with it."""

    @property
    def id(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def tags(self) -> Mapping[str, str]: ...
    @property
    def hostname(self) -> str: ...
    @property
    def private_address(self) -> str: ...
    @property
    def public_address(self) -> str: ...
    @property
    def made_by(self) -> str: ...
    @property
    def attached(self) -> Collection[str]: ...


class Group(Protocol):
    """A planned group. tags: by which its machines are known."""

    @property
    def name(self) -> str: ...
    @property
    def count(self) -> int: ...
    @property
    def tags(self) -> Mapping[str, str]: ...


Planned = TypeVar("Planned", bound=Group)


def discovered(
    handover: Handover,
    groups: Sequence[Group],
    machines: Sequence[Machine],
    keys: Mapping[str, str],
    proxy_without_bastion: Callable[[Machine], str],
) -> Discovered:
    """Running machines whose host key is known are nodes; the others come with the reason why they are not.

    keys: host keys by machine id. proxy_without_bastion: the ProxyCommand to a machine where no machine of the stack
    has a public address.
    """
    reachable = [
        machine for machine in machines if machine.state == "running" and machine.id in keys and _is_named(machine)
    ]
    entrance = next((machine for machine in reachable if ENTRANCE in machine.tags and machine.public_address), None)
    bastion = _node(groups, entrance, keys, "") if entrance else None

    def proxy(machine: Machine) -> str:
        if machine.public_address:
            return ""
        return ssh.through(handover, bastion) if bastion else proxy_without_bastion(machine)

    positions = {group.name: i for i, group in enumerate(groups)}
    nodes = [_node(groups, machine, keys, proxy(machine)) for machine in reachable]
    in_order = tuple(sorted(nodes, key=lambda node: positions.get(node.group, len(groups))))
    current = handover.model_copy(update={"nodes": in_order, "store": _store(groups, handover, reachable)})
    return Discovered(current, tuple(_waiting(groups, machine) for machine in machines if machine not in reachable))


def members(groups: Sequence[Group], machines: Sequence[Machine]) -> tuple[NodeState, ...]:
    """Nodes of a Kubernetes cluster: they are reached through its API, never by SSH."""
    return tuple(
        NodeState(machine.hostname, group_of(groups, machine), machine.private_address, machine.state)
        for machine in machines
    )


def missing(groups: Sequence[Planned], machines: Sequence[Machine]) -> Iterator[tuple[Planned, str]]:
    """The groups with too few machines, and how many they have."""
    groups_present = [group_of(groups, machine) for machine in machines if machine.state in HERE]
    for group in groups:
        if (number := groups_present.count(group.name)) < group.count:
            yield group, f"{number} of {group.count} nodes"


def group_of(groups: Sequence[Group], machine: Machine) -> str:
    """The name of a machine's group; empty where the stack file no longer has it."""
    return next((group.name for group in groups if group.tags.items() <= machine.tags.items()), "")


def _store(groups: Sequence[Group], handover: Handover, reachable: Sequence[Machine]) -> Store:
    """The first member of its group runs it: of a fleet only now its address is known, and what an earlier discovery
    returned may be that of a member that has ended."""
    members = (machine.private_address for machine in reachable if group_of(groups, machine) == handover.store.host)
    return handover.store.model_copy(update={"address": next(members, handover.store.address)})


def _node(groups: Sequence[Group], machine: Machine, keys: Mapping[str, str], proxy: str) -> Node:
    return Node(
        name=machine.hostname,
        group=group_of(groups, machine),
        address=machine.public_address or machine.private_address,
        port=SSH_PORT,
        host_key=keys[machine.id],
        prefix="/",
        proxy=proxy,
    )


def _is_named(machine: Machine) -> bool:
    """Whether its name is a valid host name: whoever may change a machine in the cloud may name it anything."""
    return re.fullmatch(HOST, machine.hostname) is not None


def _waiting(groups: Sequence[Group], machine: Machine) -> NodeState:
    reason = machine.state
    if machine.state == "running":
        no_key = "its host key is not in its console output yet"
        reason = (
            no_key
            if _is_named(machine)
            else f"{machine.hostname!r} is not a valid host name: terminate it, `up` starts another"
        )
    state = "starting" if machine.state in HERE else "leaving"
    return NodeState(machine.hostname or machine.id, group_of(groups, machine), machine.private_address, state, reason)
