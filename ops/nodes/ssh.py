"""SSH to the nodes of a handover, with checked host keys, and their readiness reports."""

from __future__ import annotations

import shlex
import socket
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass

from infra.handover import Handover, Node
from infra.printable import one_line
from ops import untrusted
from ops.engine import processes
from ops.engine.processes import Completed
from ops.untrusted import REPORT_BYTES, Report, UnreadableError

JOB_LOGIN = "gpufleet-job"
AS_JOB = "/usr/local/lib/gpufleet/as-job"  # of the role job_login: root starts a program as the job login
LOST = "lost"  # the state of a node that its cloud will not replace by itself
CONNECT_SECONDS, ANSWER_SECONDS = 2, 10  # for TCP, and for the SSH handshake
LINE_SECONDS = 60.0  # for a shell line from its connection to its end
REPORT_SECONDS = 60.0  # for a readiness report


@dataclass(frozen=True)
class NodeState:
    """state: ready | not ready | unconfigured | unreachable; reason: why it is not ready, else empty.

    Most of these texts come from a cloud or a node: each is made one line.
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
    """A system path on this node: below its `prefix` where an unprivileged login cannot write to `/`."""
    return node.prefix.rstrip("/") + path


def as_job(
    node: Node, arguments: Sequence[str], environment: Mapping[str, str] | None = None, before: Sequence[str] = ()
) -> str:
    """The shell line that runs a program as the job login, in its home.

    On a machine that is an unprivileged login; a node that is only a process has no other login than the one for SSH.
    environment: variables of the program; a value is quoted for the shell already. before: the command that root runs
    it with.
    """
    settings = " ".join(f"{name}={value}" for name, value in (environment or {}).items())
    started = f"sudo -n env {settings} {shlex.join([*before, AS_JOB])}" if node.prefix == "/" else f"env {settings}"
    return f"{started} {shlex.join(arguments)}"


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
) -> Completed:
    """Runs a shell line on a node, with `given` on its standard input.

    When its output exceeds `most` bytes, or after `seconds`, the return code is `processes.CUT` and `stderr` has the
    reason.
    """
    answer = processes.bounded(ssh(handover, node, remote), given=given.encode(), seconds=seconds, most=most)
    out, err = (stream.decode(errors="replace") for stream in (answer.stdout, answer.stderr))
    return Completed(answer.args, answer.returncode, out, err)


def refused(address: str, port: int) -> str:
    """Why a TCP port does not accept a connection; empty where it does."""
    try:
        socket.create_connection((address, port), CONNECT_SECONDS).close()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def last_line(text: str) -> str:
    """The last line of a program's error output; empty without one."""
    return next(filter(str.strip, reversed(text.splitlines())), "").strip()


def states(handover: Handover) -> list[NodeState]:
    """The state of each node, queried in parallel."""
    with ThreadPoolExecutor(max_workers=32) as pool:
        return list(pool.map(lambda node: state(handover, node), handover.nodes))


def state(handover: Handover, node: Node) -> NodeState:
    def node_state(value: str, reason: str = "") -> NodeState:
        return NodeState(node.name, node.group, node.address, value, reason)

    if not node.proxy and (reason := refused(node.address, node.port)):
        return node_state("unreachable", f"port {node.port}: {reason}")
    file = shlex.quote(under(node, "/var/lib/gpufleet/ready.json"))
    answer = run(handover, node, f"test -e {file} || exit 3; cat {file}", seconds=REPORT_SECONDS)
    if answer.returncode == 3:
        return node_state("unconfigured", "gpu_node.yml has not finished on it")
    if answer.returncode == processes.CUT:
        return node_state("not ready", f"sends an unreadable report: {answer.stderr}; log in and inspect it")
    if answer.returncode:
        return node_state("unreachable", last_line(answer.stderr) or "ssh failed")
    try:
        report = untrusted.parsed(Report, answer.stdout)
    except UnreadableError as error:
        return node_state("not ready", f"sends an unreadable report: {error}; run gpu_node.yml on it, or terminate it")
    return node_state("ready") if report.ready else node_state("not ready", "; ".join(report.faults))
