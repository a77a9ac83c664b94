"""The current nodes at AWS: their host keys, and the way to those without a public address."""

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


def discover(account: Account, plan: AwsPlan, handover: Handover) -> Discovered:
    """Running machines whose host key is known are nodes; the others come with the reason why they are not."""
    machines = instances(account, plan.tags)
    missing_states = tuple(_missing(plan, machines))
    if handover.kubernetes:
        return Discovered(handover, (*discovery.members(plan.groups, machines), *missing_states))
    running = [instance for instance in machines if instance.state == "running"]
    keys = host_keys.learn(running, Path(handover.access.known_hosts_file), partial(_console, account))
    now = discovery.discovered(handover, plan.groups, machines, keys, partial(_session, plan, handover))
    return Discovered(now.handover, (*now.others, *missing_states))


def _console(account: Account, instance: str) -> str:
    ec2 = account.client("ec2")
    try:
        response = ec2.get_console_output(InstanceId=instance, Latest=True)
    except ClientError as error:
        if error.response["Error"]["Code"] != "UnsupportedOperation":
            raise
        response = ec2.get_console_output(InstanceId=instance)  # older types have no latest output, only the stored one
    return response.get("Output", "")


def _session(plan: AwsPlan, handover: Handover, instance: Machine) -> str:
    """Session Manager carries the connection; EC2 Instance Connect admits the stack's own key for a minute.

    Sources: Systems Manager User Guide, "Allow and control permissions for SSH connections through Session Manager";
    EC2 User Guide, "Connect to a Linux instance using EC2 Instance Connect".
    """
    in_region = ["--region", plan.region]
    key = f"file://{handover.access.key_file}.pub"
    send_key = ["aws", "ec2-instance-connect", "send-ssh-public-key", *in_region, "--instance-id", instance.id]
    send_key += ["--instance-os-user", handover.access.user, "--ssh-public-key", key]
    start_session = ["aws", "ssm", "start-session", *in_region, "--target", instance.id]
    start_session += ["--document-name", "AWS-StartSSHSession", "--parameters", "portNumber=%p"]
    both = f"{ssh.verbatim(shlex.join(send_key))} >/dev/null && exec {shlex.join(start_session)}"
    return f"sh -c {shlex.quote(both)}"  # ssh puts an `exec` before it, after which no second command would come


def _missing(plan: AwsPlan, machines: Sequence[Instance]) -> Iterable[NodeState]:
    for group, number in discovery.missing(plan.groups, machines):
        if capacity.refills_never(group):
            remedy = f"`gpufleet up {plan.stack} --renew {group.name}` ends the others and requests all again"
            reason = f"{number}: AWS does not replace one that has ended; {remedy}"
            yield NodeState(group.name, group.name, "", LOST, reason)
        else:
            yield NodeState(group.name, group.name, "", "missing", f"{number}: AWS has not started the others yet")
