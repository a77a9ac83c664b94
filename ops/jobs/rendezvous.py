"""The rendezvous store of a job: it runs outside the job, so that the job survives the loss of any node."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from infra.handover import Handover, Node
from ops import untrusted
from ops.engine import processes
from ops.engine.processes import Process
from ops.errors import CommandError
from ops.nodes import ssh
from ops.untrusted import LINE_BYTES, Endpoint, UnreadableError

HERE = "control"  # how the handover names this computer


@contextmanager
def store(handover: Handover, members: int, key: str) -> Iterator[str]:
    """Serves it where the handover says, for clients that have the key, and yields HOST:PORT; empty for a job of one
    node, which needs none. It ends with this process, behind SSH with the connection. Raises CommandError."""
    if members == 1 and handover.store.host != HERE:
        yield ""
        return
    process = processes.leased(_command(handover))  # the job needs its store to stop with a checkpoint
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        send_key(process, key)
        first = process.stdout.readline(LINE_BYTES)
        if not first:
            raise CommandError(
                f"the rendezvous store does not start on {handover.store.address}: see its message above"
            )
        try:
            endpoint = untrusted.parsed(Endpoint, first)
        except UnreadableError as error:
            where = handover.store.address
            raise CommandError(f"the rendezvous store on {where} sends an unreadable address: {error}") from None
        yield f"{endpoint.address}:{endpoint.port}"
    finally:
        process.stdin.close()  # its lease: it ends by itself
        process.wait()


def send_key(process: Process, key: str) -> None:
    """Gives a store or a launcher the run's key on its standard input: other users can read its arguments. One that
    has ended already reports the reason itself."""
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        os.write(process.stdin.fileno(), f"{key}\n".encode())


def _command(handover: Handover) -> list[str]:
    """Raises CommandError where no host can run it."""
    arguments = ["-m", "training", "store", "--bind", handover.store.address, "--port", str(handover.store.port)]
    arguments += ["--store-key", "-"]
    if handover.store.host == HERE:
        return [sys.executable, *arguments]
    if not handover.store.host:
        raise CommandError(
            f"the nodes of {handover.stack} do not reach each other: jobs need a group with `fabric: required`"
        )
    host = next((node for node in handover.nodes if node.group == handover.store.host), None)
    if host is None:
        raise CommandError(
            f"no node of {handover.store.host} is up, which keeps the rendezvous store of {handover.stack}"
        )
    return ssh.ssh(handover, host, python(handover, host, arguments))


def python(
    handover: Handover,
    node: Node,
    arguments: list[str],
    variables: Mapping[str, str] | None = None,
    before: Sequence[str] = (),
) -> str:
    """The shell line that runs the training package on a node as the job login; an `up` meanwhile does not change it.

    variables: of its environment. before: see `nodes.as_job`.
    """
    package = f'"$(readlink -f {shlex.quote(ssh.under(node, "/opt/gpufleet/current"))})"'
    quoted = {name: shlex.quote(value) for name, value in (variables or {}).items()}
    environment = {"PYTHONPATH": package, **quoted}
    return f"exec {ssh.as_job(node, [handover.environment.python, *arguments], environment, before)}"
