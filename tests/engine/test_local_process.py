"""`cloud: local`, `isolation: process`, through the real engine: made, reached, counted, lost, made again, removed."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from engine_runner import EngineRunner, traces, until

from infra.clouds.local.nodes import process, sweep

pytestmark = pytest.mark.skipif(bool(process.problems()), reason="; ".join(process.problems()))

STACK = "rehearsal"
UP = ("up", "--yes", "--skip-preview", "--stack", STACK)


@dataclass
class Rehearsal:
    """One stack for all claims of this file; `up` runs only for a claim that needs another cluster than the last."""

    pulumi: EngineRunner
    network: str
    spec: dict[str, Any] | None = None
    handover: dict[str, Any] = field(default_factory=dict)

    def has(self, count: int = 2, **more: Any) -> dict[str, Any]:
        """Brings the stack to a number of nodes, and returns its handover."""
        if self.spec != {"count": count, **more}:
            self.describe(STACK, count, **more)
            self.pulumi.up(STACK)
            self.spec, self.handover = {"count": count, **more}, self.pulumi.cluster(STACK)
        return self.handover

    def has_any(self) -> dict[str, Any]:
        """Whatever the last claim left, or two nodes."""
        return self.has(**(self.spec or {}))

    def is_gone(self) -> None:
        if self.spec is not None:
            self.pulumi.destroy(STACK)
            self.spec = None

    def describe(self, stack: str, count: int, addresses: list[str] | None = None, **more: Any) -> None:
        self.pulumi.write(
            stack,
            cloud="local",
            isolation="process",
            network={"cidr": self.network},
            nodes=[{"name": "node", "count": count} | ({"addresses": addresses} if addresses else {})],
            storage=[{"name": "data", "kind": "folder", "mount": "/data"}],
            **more,
        )

    @property
    def place(self) -> Path:
        return self.pulumi.site(STACK)

    def ssh(self, node: str, command: str, *options: str) -> subprocess.CompletedProcess[str]:
        words = ["ssh", "-F", str(self.place / "ssh_config"), *options, node, command]
        return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def cluster(pulumi: EngineRunner, loopback: str) -> Rehearsal:
    return Rehearsal(pulumi, loopback)


def pid(handover: dict[str, Any], name: str) -> int:
    prefix = next(node["prefix"] for node in handover["nodes"] if node["name"] == name)
    return int(Path(prefix, "sshd", "pid").read_text())


def names(handover: dict[str, Any]) -> list[str]:
    return [node["name"] for node in handover["nodes"]]


def test_every_node_is_reached_and_its_sessions_live_in_its_own_folder(cluster: Rehearsal) -> None:
    handover = cluster.has_any()

    for node in handover["nodes"]:
        answer = cluster.ssh(node["name"], "pwd; echo ~; echo $GPUFLEET_NODE", "-o", "StrictHostKeyChecking=yes")
        assert answer.stdout.splitlines() == [f"{node['prefix']}/home", f"{node['prefix']}/home", f"{node['prefix']}/"]


def test_files_are_copied_to_the_nodes_home(cluster: Rehearsal) -> None:
    handover = cluster.has_any()

    for protocol in ("-s", "-O"):
        target = f"node-1:copied{protocol}"
        subprocess.run(["scp", "-q", protocol, "-F", cluster.place / "ssh_config", __file__, target], check=True)
        assert (
            Path(handover["nodes"][0]["prefix"], "home", f"copied{protocol}").read_text() == Path(__file__).read_text()
        )


def test_a_node_with_another_host_key_is_not_trusted(cluster: Rehearsal, tmp_path: Path) -> None:
    handover = cluster.has()
    one, two = handover["nodes"][:2]
    forged = tmp_path / "known_hosts"
    forged.write_text(f"[{one['address']}]:{one['port']} {two['host_key']}\n")

    answer = cluster.ssh("node-1", "true", "-o", f"UserKnownHostsFile={forged}")

    assert answer.returncode == 255
    assert "Host key verification failed" in answer.stderr


def test_forwarding_is_off(cluster: Rehearsal) -> None:
    handover = cluster.has()

    answer = cluster.ssh("node-1", "true", "-W", f"{handover['nodes'][1]['address']}:{handover['nodes'][1]['port']}")

    assert "administratively prohibited" in answer.stderr or "open failed" in answer.stderr


def test_a_second_up_changes_nothing(cluster: Rehearsal, pulumi: EngineRunner) -> None:
    cluster.has_any()

    pulumi.up(STACK, "--refresh", "--expect-no-changes")


def test_a_killed_node_is_missed_by_refresh_and_made_again_by_up(cluster: Rehearsal, pulumi: EngineRunner) -> None:
    before = cluster.has_any()
    os.kill(pid(before, "node-1"), signal.SIGKILL)
    cluster.spec = None

    pulumi.refresh(STACK)
    known = [resource["id"] for resource in pulumi.resources(STACK) if resource["type"].endswith(":Node")]
    after = cluster.has()

    assert [name.split("/")[-1] for name in known] == ["node-2"]
    assert cluster.ssh("node-1", "true").returncode == 0
    assert after["nodes"][1] == before["nodes"][1]


def test_a_new_login_key_needs_no_new_node(cluster: Rehearsal, tmp_path: Path) -> None:
    before = cluster.has_any()
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "mine"], check=True)

    after = cluster.has(access={"public_key": (tmp_path / "mine.pub").read_text().strip()})

    node = after["nodes"][0]
    known = f"-oUserKnownHostsFile={after['access']['known_hosts_file']}"
    mine = ["ssh", "-F", "none", known, "-oIdentitiesOnly=yes", "-oIdentityAgent=none", "-i", tmp_path / "mine"]
    answer = subprocess.run([*mine, "-p", str(node["port"]), node["address"], "true"], check=False, capture_output=True)
    assert answer.returncode == 0, answer.stderr
    assert [pid(after, name) for name in names(after)] == [pid(before, name) for name in names(before)]


def test_the_state_holds_neither_code_nor_private_keys(cluster: Rehearsal, pulumi: EngineRunner) -> None:
    cluster.has_any()

    resources = pulumi.resources(STACK)

    assert "PRIVATE KEY" not in json.dumps(resources)
    assert all(len(resource.get("inputs", {}).get("__provider", "")) < 150 for resource in resources)


def test_nodes_come_and_go_with_the_count_and_the_others_stay(cluster: Rehearsal) -> None:
    two = cluster.has_any()
    three = cluster.has(3)
    one = cluster.has(1)

    assert names(three) == ["node-1", "node-2", "node-3"]
    assert names(one) == ["node-1"]
    assert two["nodes"][0] == three["nodes"][0] == one["nodes"][0]
    assert not Path(three["nodes"][2]["prefix"]).exists()


def test_a_port_that_is_taken_is_one_clear_line_before_anything_is_made(
    cluster: Rehearsal, pulumi: EngineRunner, loopback: str
) -> None:
    address = loopback.replace(".0/24", ".99")
    cluster.describe("taken", count=1, addresses=[address])
    with socket.create_server((address, 2222)):
        answer = pulumi.up("taken", check=False)

    lines = [line for line in answer.stdout.splitlines() if f"{address}:2222 is in use by another program" in line]
    assert answer.returncode != 0
    assert "network.port" in lines[0]
    assert "Traceback" not in answer.stdout
    assert not pulumi.site("taken").exists()


def test_destroy_leaves_nothing_and_can_be_said_twice(cluster: Rehearsal, pulumi: EngineRunner) -> None:
    cluster.is_gone()
    before = traces(pulumi.root)
    cluster.has()
    config = cluster.place / "ssh_config"
    work = ["ssh", "-q", "-F", config, "node-1", "setsid sleep 600 & exec sleep 600"]
    with subprocess.Popen(work, stdin=subprocess.DEVNULL) as session:
        until(lambda: sum("sleep 600" in line for line in sweep.left_behind(cluster.place)) > 1)

        cluster.is_gone()
        session.wait()

    pulumi.destroy(STACK)
    assert traces(pulumi.root) == before
    assert sweep.left_behind(cluster.place) == []


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param("*", marks=pytest.mark.drill),
        "nodes/*/sshd/host_key",
        pytest.param("nodes/*/sshd/log", marks=pytest.mark.drill),
    ],
)
def test_an_up_that_was_killed_in_a_create_leaves_nothing_after_cancel_and_destroy(
    cluster: Rehearsal, pulumi: EngineRunner, moment: str
) -> None:
    cluster.is_gone()
    before = traces(pulumi.root)
    cluster.describe(STACK, count=3)

    pulumi.stop(signal.SIGKILL, lambda: any(cluster.place.glob(moment)), *UP)
    pulumi("cancel", "--yes", STACK)
    pulumi.destroy(STACK)

    until(lambda: traces(pulumi.root) == before)


def test_ctrl_c_leaves_a_whole_state_that_destroy_can_work_with(cluster: Rehearsal, pulumi: EngineRunner) -> None:
    cluster.is_gone()
    before = traces(pulumi.root)
    cluster.describe(STACK, count=3)

    pulumi.stop(signal.SIGINT, lambda: any(cluster.place.glob("nodes/*/sshd/host_key")), *UP)
    pulumi.destroy(STACK)

    until(lambda: traces(pulumi.root) == before)


@pytest.mark.drill
@pytest.mark.parametrize("seed", range(20))
def test_an_up_that_was_killed_at_any_time_can_be_gone_on_with_or_taken_down(
    cluster: Rehearsal, pulumi: EngineRunner, seed: int
) -> None:
    cluster.is_gone()
    before = traces(pulumi.root)
    cluster.describe(STACK, count=3)
    moment = time.monotonic() + random.Random(seed).uniform(0.5, 4.0)

    pulumi.stop(signal.SIGKILL, lambda: time.monotonic() > moment, *UP)
    pulumi("cancel", "--yes", STACK)
    if seed % 2:
        pulumi.up(STACK)
        assert [cluster.ssh(f"node-{i}", "true").returncode for i in (1, 2, 3)] == [0, 0, 0]
        until(lambda: sum(line.startswith("process") for line in sweep.left_behind(cluster.place)) == 3)
    pulumi.destroy(STACK)

    until(lambda: traces(pulumi.root) == before)
