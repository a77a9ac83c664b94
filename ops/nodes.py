"""Nodes as the handover tells them: reached over SSH with checked host keys, asked for their own word."""

from __future__ import annotations

import json
import shlex
import socket
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass

from infra.handover import Handover, Node

AS_JOB = "/usr/local/lib/gpufleet/as-job"  # of the role job_login: root starts a program as the login of jobs
LOST = "lost"  # the state of what does not come back by itself: waiting for it is in vain
CONNECT_SECONDS, ANSWER_SECONDS = 2, 10  # for TCP, and until the SSH server has said who it is


@dataclass(frozen=True)
class NodeState:
    """state: ready | not ready | unconfigured | unreachable; reason: why it is not ready, else empty."""

    name: str
    group: str
    address: str
    state: str
    reason: str = ""

    def as_json(self) -> dict[str, str]:
        return asdict(self)


def under(node: Node, path: str) -> str:
    """A system path as this node has it: below its own folder where an unprivileged login cannot write `/`."""
    return node.prefix.rstrip("/") + path


def as_job(node: Node, words: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """The shell line that runs a program as the login of jobs, in its home.

    On a machine that is a login without rights; a node that is only a process has none but the one it is reached by.
    environment: what the program finds in its own; a value is a word of the shell, as `shlex.quote` makes it.
    """
    settings = " ".join(f"{name}={value}" for name, value in (environment or {}).items())
    started = f"sudo -n env {settings} {AS_JOB}" if node.prefix == "/" else f"env {settings}"
    return f"{started} {shlex.join(words)}"


def ssh(handover: Handover, node: Node, remote: str) -> list[str]:
    """The command that runs a shell line on a node."""
    return [*_connection(handover, node), remote]


def through(handover: Handover, node: Node) -> str:
    """The ProxyCommand that carries SSH to another node through this one."""
    return shlex.join(_connection(handover, node, "-W", "%h:%p"))


def _connection(handover: Handover, node: Node, *more: str) -> list[str]:
    access = handover.access
    options = {
        "IdentityFile": access.key_file,
        "IdentitiesOnly": "yes",
        "IdentityAgent": "none",
        "UserKnownHostsFile": access.known_hosts_file,
        "GlobalKnownHostsFile": "/dev/null",
        "StrictHostKeyChecking": "yes",
        "BatchMode": "yes",
        "ConnectTimeout": str(ANSWER_SECONDS),
        "ServerAliveInterval": "15",
        "LogLevel": "ERROR",
        "Port": str(node.port),
        **({"ProxyCommand": node.proxy} if node.proxy else {}),
    }
    flags = [part for key, value in options.items() for part in ("-o", f"{key}={value}")]
    return ["ssh", "-F", "none", *flags, *more, f"{access.user}@{node.address}"]


def run(handover: Handover, node: Node, remote: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a shell line on a node, with `given` on its standard input."""
    return subprocess.run(ssh(handover, node, remote), input=given or "", capture_output=True, text=True, check=False)


def states(handover: Handover) -> list[NodeState]:
    """What each node says of itself, asked of all at once."""
    with ThreadPoolExecutor(max_workers=32) as pool:
        return list(pool.map(lambda node: state(handover, node), handover.nodes))


def state(handover: Handover, node: Node) -> NodeState:
    def told(word: str, reason: str = "") -> NodeState:
        return NodeState(node.name, node.group, node.address, word, reason)

    try:
        if not node.proxy:
            socket.create_connection((node.address, node.port), CONNECT_SECONDS).close()
    except OSError as error:
        return told("unreachable", f"port {node.port}: {error.strerror or error}")
    file = shlex.quote(under(node, "/var/lib/gpufleet/ready.json"))
    answer = run(handover, node, f"test -e {file} || exit 3; cat {file}")
    if answer.returncode == 3:
        return told("unconfigured", "gpu_node.yml has not finished on it")
    if answer.returncode:
        return told("unreachable", answer.stderr.strip().splitlines()[-1] if answer.stderr.strip() else "ssh failed")
    report = json.loads(answer.stdout)
    failed = [f"{check['name']}: {check['detail']}" for check in report["checks"] if not check["ok"]]
    return told("ready") if report["ready"] else told("not ready", "; ".join(failed))
