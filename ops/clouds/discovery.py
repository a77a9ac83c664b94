"""The nodes of the moment: machines of a rented cloud that carry the stack's tags, told as the handover tells nodes."""

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
HERE = ("pending", "running")  # states of machines that count; the others are leaving


class Machine(Protocol):
    """A machine as its cloud describes it. hostname: what it calls itself. made_by: the engine's id of its fleet or
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
    told: Handover,
    groups: Sequence[Group],
    found: Sequence[Machine],
    keys: Mapping[str, str],
    without_door: Callable[[Machine], str],
) -> Discovered:
    """Machines that run and whose host key is known can be reached; the others are told with what they wait for.

    keys: host keys by machine id. without_door: the command that carries SSH to a machine where no machine of the
    stack has a public address.
    """
    reachable = [each for each in found if each.state == "running" and each.id in keys and _is_named(each)]
    entrance = next((each for each in reachable if ENTRANCE in each.tags and each.public_address), None)
    door = _node(groups, entrance, keys, "") if entrance else None

    def way(machine: Machine) -> str:
        if machine.public_address:
            return ""
        return ssh.through(told, door) if door else without_door(machine)

    places = {group.name: i for i, group in enumerate(groups)}
    made = [_node(groups, each, keys, way(each)) for each in reachable]
    in_order = tuple(sorted(made, key=lambda node: places.get(node.group, len(groups))))
    whole = told.model_copy(update={"nodes": in_order, "store": _store(groups, told, reachable)})
    return Discovered(whole, tuple(_waiting(groups, each) for each in found if each not in reachable))


def members(groups: Sequence[Group], found: Sequence[Machine]) -> tuple[NodeState, ...]:
    """Nodes of a cluster of Kubernetes: they are reached through its API, never by SSH."""
    return tuple(NodeState(each.hostname, group_of(groups, each), each.private_address, each.state) for each in found)


def missing(groups: Sequence[Planned], found: Sequence[Machine]) -> Iterator[tuple[Planned, str]]:
    """The groups that have too few machines, and how many they have."""
    here = [group_of(groups, each) for each in found if each.state in HERE]
    for group in groups:
        if (number := here.count(group.name)) < group.count:
            yield group, f"{number} of {group.count} nodes"


def group_of(groups: Sequence[Group], machine: Machine) -> str:
    """Empty for a machine of a group that the stack file no longer has."""
    return next((group.name for group in groups if group.tags.items() <= machine.tags.items()), "")


def _store(groups: Sequence[Group], told: Handover, reachable: Sequence[Machine]) -> Store:
    """The first member of its group runs it: of a fleet only now its address is known, and what an earlier discovery
    told may be that of a member that is gone."""
    members = (each.private_address for each in reachable if group_of(groups, each) == told.store.host)
    return told.store.model_copy(update={"address": next(members, told.store.address)})


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
    """Whether it can be told of by its name: who may change a machine in the cloud may call it what he likes."""
    return re.fullmatch(HOST, machine.hostname) is not None


def _waiting(groups: Sequence[Group], machine: Machine) -> NodeState:
    reason = machine.state
    if machine.state == "running":
        named = "its console has not told its host key yet"
        reason = (
            named if _is_named(machine) else f"{machine.hostname!r} is no name of a host: end it, `up` starts another"
        )
    state = "starting" if machine.state in HERE else "leaving"
    return NodeState(machine.hostname or machine.id, group_of(groups, machine), machine.private_address, state, reason)
