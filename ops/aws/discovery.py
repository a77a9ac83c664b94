"""The nodes of the moment: instances that carry the stack's tags, told as the handover tells nodes."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from infra.clouds.tags import ENTRANCE
from infra.handover import Handover, Node, Store
from infra.plan.aws import AwsPlan
from ops import nodes
from ops.aws import capacity, host_keys
from ops.aws.account import Account
from ops.aws.tagged import Instance, instances
from ops.clouds import Discovered
from ops.nodes import LOST, NodeState

SSH_PORT = 22


def discover(account: Account, plan: AwsPlan, told: Handover) -> Discovered:
    """Nodes that run and whose host key is known can be reached; the others are told with what they wait for."""
    found = instances(account, plan.tags)
    if told.kubernetes:  # its nodes are reached through its API, never by SSH
        return Discovered(told, (*(_member(plan, each) for each in found), *_missing(plan, found)))
    running = [each for each in found if each.state == "running"]
    keys = host_keys.learn(account, running, Path(told.access.known_hosts_file))
    reachable = [each for each in running if each.id in keys]
    entrance = next((each for each in reachable if ENTRANCE in each.tags and each.public_address), None)
    door = _node(plan, told, entrance, keys, None) if entrance else None
    made = [door if each is entrance and door else _node(plan, told, each, keys, door) for each in reachable]
    others = [_waiting(plan, each) for each in found if each not in reachable]
    in_order = tuple(sorted(made, key=lambda node: _order(plan, node.group)))
    whole = told.model_copy(update={"nodes": in_order, "store": _store(plan, told, reachable)})
    return Discovered(whole, (*others, *_missing(plan, found)))


def _store(plan: AwsPlan, told: Handover, reachable: Sequence[Instance]) -> Store:
    """Of a fleet, the first member runs it: only now is its address known."""
    members = (each.private_address for each in reachable if _group(plan, each) == told.store.host)
    return told.store.model_copy(update={"address": told.store.address or next(members, "")})


def _node(plan: AwsPlan, told: Handover, instance: Instance, keys: Mapping[str, str], door: Node | None) -> Node:
    """Reached at its public address, else through the entrance, else through Session Manager."""
    direct = bool(instance.public_address)
    node = Node(
        name=instance.hostname,
        group=_group(plan, instance),
        address=instance.public_address or instance.private_address,
        port=SSH_PORT,
        host_key=keys[instance.id],
        prefix="/",
    )
    if direct:
        return node
    proxy = nodes.through(told, door) if door else _session(plan, told, instance)
    return node.model_copy(update={"proxy": proxy})


def _session(plan: AwsPlan, told: Handover, instance: Instance) -> str:
    """Session Manager carries the connection; EC2 Instance Connect lets the stack's own key in for a minute.

    Sources: Systems Manager User Guide, "Allow and control permissions for SSH connections through Session Manager";
    EC2 User Guide, "Connect to a Linux instance using EC2 Instance Connect".
    """
    at = ["--region", plan.region]
    key = f"file://{told.access.key_file}.pub"
    let_in = ["aws", "ec2-instance-connect", "send-ssh-public-key", *at, "--instance-id", instance.id]
    let_in += ["--instance-os-user", told.access.user, "--ssh-public-key", key]
    carry = ["aws", "ssm", "start-session", *at, "--target", instance.id]
    carry += ["--document-name", "AWS-StartSSHSession", "--parameters", "portNumber=%p"]
    both = f"{shlex.join(let_in)} >/dev/null && exec {shlex.join(carry)}"
    return f"sh -c {shlex.quote(both)}"  # ssh puts an `exec` before it, after which no second command would come


def _group(plan: AwsPlan, instance: Instance) -> str:
    """Empty for an instance of a group that the stack file no longer has."""
    return next((group.name for group in plan.groups if group.tags.items() <= instance.tags.items()), "")


def _order(plan: AwsPlan, group: str) -> int:
    return next((i for i, each in enumerate(plan.groups) if each.name == group), len(plan.groups))


def _member(plan: AwsPlan, instance: Instance) -> NodeState:
    return NodeState(instance.hostname, _group(plan, instance), instance.private_address, instance.state)


def _waiting(plan: AwsPlan, instance: Instance) -> NodeState:
    reason = "its console has not told its host key yet" if instance.state == "running" else instance.state
    state = "starting" if instance.state in {"pending", "running"} else "leaving"
    name = instance.hostname or instance.id
    return NodeState(name, _group(plan, instance), instance.private_address, state, reason)


def _missing(plan: AwsPlan, found: Sequence[Instance]) -> Iterable[NodeState]:
    here = [_group(plan, each) for each in found if each.state in {"pending", "running"}]
    for group in plan.groups:
        if (number := here.count(group.name)) < group.count:
            told = f"{number} of {group.count} nodes"
            if capacity.refills_never(group):
                again = f"`gpufleet up {plan.stack} --renew {group.name}` ends the others and asks for all anew"
                reason = f"{told}: AWS starts none in the place of one that has ended; {again}"
                yield NodeState(group.name, group.name, "", LOST, reason)
            else:
                yield NodeState(group.name, group.name, "", "missing", f"{told}: AWS has given no more yet")
