"""Nodes as the handover tells them: reached over SSH with checked host keys, asked for their own word."""

from __future__ import annotations

import shlex
import socket
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass

from infra.handover import Handover, Node
from infra.printable import one_line
from ops import untrusted
from ops.engine import processes
from ops.untrusted import REPORT_BYTES, Report, UnreadableError

AS_JOB = "/usr/local/lib/gpufleet/as-job"  # of the role job_login: root starts a program as the login of jobs
LOST = "lost"  # the state of what does not come back by itself: waiting for it is in vain
CONNECT_SECONDS, ANSWER_SECONDS = 2, 10  # for TCP, and until the SSH server has said who it is
LINE_SECONDS = 60.0  # for a shell line from its connection to its end
REPORT_SECONDS = 60.0  # for a report, which is there or is not


@dataclass(frozen=True)
class NodeState:
    """state: ready | not ready | unconfigured | unreachable; reason: why it is not ready, else empty.

    A cloud or a node has chosen most of these words: each is kept within its line.
    """

    name: str
    group: str
    address: str
    state: str
    reason: str = ""

    def __post_init__(self) -> None:
        for name, text in asdict(self).items():
            object.__setattr__(self, name, one_line(text))

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
    return [*_options(handover, node), "--", f"{handover.access.user}@{node.address}", remote]


def through(handover: Handover, node: Node) -> str:
    """The ProxyCommand that carries SSH to another node through this one."""
    options = map(verbatim, _options(handover, node))
    return shlex.join([*options, "-W", "%h:%p", "--", f"{handover.access.user}@{node.address}"])


def verbatim(text: str) -> str:
    """A text within an option of OpenSSH that knows tokens, which begin with % (ssh_config(5), TOKENS)."""
    return text.replace("%", "%%")


def _path(text: str) -> str:
    """A path as an option: a space in it would part two (ssh_config(5))."""
    return '"{}"'.format(verbatim(text).replace("\\", "\\\\").replace('"', '\\"'))


def _options(handover: Handover, node: Node) -> list[str]:
    access = handover.access
    options = {
        "IdentityFile": _path(access.key_file),
        "IdentitiesOnly": "yes",
        "IdentityAgent": "none",
        "UserKnownHostsFile": _path(access.known_hosts_file),
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
    return ["ssh", "-F", "none", *flags]


def run(
    handover: Handover,
    node: Node,
    remote: str,
    given: str = "",
    *,
    seconds: float = LINE_SECONDS,
    most: int = REPORT_BYTES,
) -> subprocess.CompletedProcess[str]:
    """Runs a shell line on a node, with `given` on its standard input.

    Its output is the node's to choose: of more than `most` bytes, or after `seconds`, nothing is left but the reason in
    `stderr`, and the return code is `command.CUT`.
    """
    answer = processes.bounded(ssh(handover, node, remote), given=given.encode(), seconds=seconds, most=most)
    out, err = (stream.decode(errors="replace") for stream in (answer.stdout, answer.stderr))
    return subprocess.CompletedProcess(answer.args, answer.returncode, out, err)


def last_line(text: str) -> str:
    """What a program's complaint ends with; empty where it says nothing."""
    return next(filter(str.strip, reversed(text.splitlines())), "").strip()


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
    answer = run(handover, node, f"test -e {file} || exit 3; cat {file}", seconds=REPORT_SECONDS)
    if answer.returncode == 3:
        return told("unconfigured", "gpu_node.yml has not finished on it")
    if answer.returncode == processes.CUT:
        return told("not ready", f"sends an unreadable report: {answer.stderr}; log in and look at it")
    if answer.returncode:
        return told("unreachable", last_line(answer.stderr) or "ssh failed")
    try:
        report = untrusted.parsed(Report, answer.stdout)
    except UnreadableError as fault:
        return told("not ready", f"sends an unreadable report: {fault}; run gpu_node.yml on it, or end it")
    return told("ready") if report.ready else told("not ready", "; ".join(report.faults))
