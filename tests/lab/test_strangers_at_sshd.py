"""Strangers at the SSH servers of `cloud: local`: any login of this computer can connect to them."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from ssh_hosts import addresses, free_port

from infra.clouds.local.nodes import process, sweep
from infra.clouds.local.nodes.site import NodeSpec

pytestmark = pytest.mark.skipif(bool(process.problems()), reason="; ".join(process.problems()))

ADDRESS = addresses(1)[0]
STRANGERS = 200
GARBAGE = (b"", b"SSH-2.0-stranger\r\n", b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 4096)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeSpec]:
    spec = NodeSpec(
        site=tmp_path / "site",
        name="node-1",
        address=ADDRESS,
        port=free_port(ADDRESS),
        public_keys=(),
        storage={},
        machine=None,
    )
    process.create(spec)
    yield spec
    sweep.remove_node(spec.site, spec.name)


def login(node: NodeSpec) -> subprocess.CompletedProcess[str]:
    command = ["ssh", "-F", str(node.site / "ssh_config"), node.name, "echo in"]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def test_two_hundred_connections_that_never_log_in_keep_nobody_out(node: NodeSpec) -> None:
    with ExitStack() as held:
        for number in range(STRANGERS):
            stranger = held.enter_context(socket.create_connection((node.address, node.port)))
            stranger.sendall(GARBAGE[number % len(GARBAGE)])

        answers = [login(node) for _ in range(5)]

    assert [answer.stdout for answer in answers] == ["in\n"] * 5, answers


def test_a_stranger_with_a_key_of_its_own_does_not_get_in(node: NodeSpec, tmp_path: Path) -> None:
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    known_hosts = f"UserKnownHostsFile={node.site / 'known_hosts'}"
    options = [word for option in (known_hosts, "IdentitiesOnly=yes", "BatchMode=yes") for word in ("-o", option)]
    command = ["ssh", "-F", "none", *options, "-i", str(key), "-p", str(node.port), node.address, "echo in"]

    answer = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    assert (answer.returncode, answer.stdout) == (255, "")
    assert "Permission denied" in answer.stderr
