"""The nodes of the moment at AWS: who is there, by which host key, and the way to those without a door."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from botocore.exceptions import ClientError

from infra.clouds.aws.plan.model import AwsPlan
from infra.handover import Handover
from ops.clouds import discovery
from ops.clouds.aws import capacity
from ops.clouds.aws.account import Account
from ops.clouds.aws.tagged_resources import Instance, instances
from ops.clouds.base import Discovered
from ops.clouds.discovery import Machine
from ops.nodes import host_keys, ssh
from ops.nodes.ssh import LOST, NodeState


def discover(account: Account, plan: AwsPlan, told: Handover) -> Discovered:
    """Nodes that run and whose host key is known can be reached; the others are told with what they wait for."""
    found = instances(account, plan.tags)
    lacking = tuple(_missing(plan, found))
    if told.kubernetes:
        return Discovered(told, (*discovery.members(plan.groups, found), *lacking))
    running = [each for each in found if each.state == "running"]
    keys = host_keys.learn(running, Path(told.access.known_hosts_file), partial(_console, account))
    now = discovery.discovered(told, plan.groups, found, keys, partial(_session, plan, told))
    return Discovered(now.told, (*now.others, *lacking))


def _console(account: Account, instance: str) -> str:
    ec2 = account.client("ec2")
    try:
        said = ec2.get_console_output(InstanceId=instance, Latest=True)
    except ClientError as error:
        if error.response["Error"]["Code"] != "UnsupportedOperation":
            raise
        said = ec2.get_console_output(InstanceId=instance)  # older types have no latest output, only the posted
    return said.get("Output", "")


def _session(plan: AwsPlan, told: Handover, instance: Machine) -> str:
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
    both = f"{ssh.verbatim(shlex.join(let_in))} >/dev/null && exec {shlex.join(carry)}"
    return f"sh -c {shlex.quote(both)}"  # ssh puts an `exec` before it, after which no second command would come


def _missing(plan: AwsPlan, found: Sequence[Instance]) -> Iterable[NodeState]:
    for group, number in discovery.missing(plan.groups, found):
        if capacity.refills_never(group):
            again = f"`gpufleet up {plan.stack} --renew {group.name}` ends the others and asks for all anew"
            reason = f"{number}: AWS starts none in the place of one that has ended; {again}"
            yield NodeState(group.name, group.name, "", LOST, reason)
        else:
            yield NodeState(group.name, group.name, "", "missing", f"{number}: AWS has given no more yet")
