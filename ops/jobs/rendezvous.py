"""The rendezvous store of a job: outside the job, so that no node is the one that must not be lost."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from infra.handover import Handover, Node
from ops import untrusted
from ops.errors import CommandError
from ops.nodes import ssh
from ops.untrusted import LINE_BYTES, Place, UnreadableError

HERE = "control"  # the handover's word for this computer


@contextmanager
def store(told: Handover, members: int, key: str) -> Iterator[str]:
    """Serves it where the handover says, for those who have the key, and yields HOST:PORT; empty for a job of one node,
    which needs none.

    Behind SSH its standard input is its lease: with the connection, or with us, it ends. Raises CommandError.
    """
    if members == 1 and told.store.host != HERE:
        yield ""
        return
    process = subprocess.Popen(
        _command(told),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C reaches us alone: the job needs its store to stop with a checkpoint
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        send_key(process, key)
        first = process.stdout.readline(LINE_BYTES)
        if not first:
            raise CommandError(
                f"the rendezvous store does not start on {told.store.address}: its own message stands above"
            )
        try:
            at = untrusted.parsed(Place, first)
        except UnreadableError as fault:
            raise CommandError(
                f"the rendezvous store on {told.store.address} does not say where it is: {fault}"
            ) from None
        yield f"{at.address}:{at.port}"
    finally:
        process.stdin.close()  # its lease: it ends by itself
        process.wait()


def send_key(process: subprocess.Popen[bytes] | subprocess.Popen[str], key: str) -> None:
    """Gives a store or a launcher the run's key on its standard input: others can read its arguments. One that has
    ended already says why itself."""
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        os.write(process.stdin.fileno(), f"{key}\n".encode())


def _command(told: Handover) -> list[str]:
    """Raises CommandError where nobody can run it."""
    asked = ["-m", "training", "store", "--bind", told.store.address, "--port", str(told.store.port)]
    asked += ["--store-key", "-"]
    if told.store.host == HERE:
        return [sys.executable, *asked]
    if not told.store.host:
        raise CommandError(
            f"the nodes of {told.stack} do not reach each other: jobs need a group with `fabric: required`"
        )
    keeper = next((node for node in told.nodes if node.group == told.store.host), None)
    if keeper is None:
        raise CommandError(f"no node of {told.store.host} is up, which keeps the rendezvous store of {told.stack}")
    return ssh.ssh(told, keeper, python(told, keeper, asked))


def python(told: Handover, node: Node, words: list[str], variables: Mapping[str, str] | None = None) -> str:
    """The shell line that runs the training package on a node as the login of jobs; its version stays that of now.

    variables: of its environment.
    """
    package = f'"$(readlink -f {shlex.quote(ssh.under(node, "/opt/gpufleet/current"))})"'
    quoted = {name: shlex.quote(value) for name, value in (variables or {}).items()}
    return f"exec {ssh.as_job(node, [told.environment.python, *words], {'PYTHONPATH': package, **quoted})}"
