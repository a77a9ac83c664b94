"""`cloud: local`, `isolation: machine`, through the real engine: booted, reached, lost, made again, removed."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from engine_runner import EngineRunner, traces, until

from infra.clouds.local.nodes import machine, sweep

ABSENT = [tool for tool in machine.TOOLS if not shutil.which(tool)]
pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="machines need root"),
    pytest.mark.skipif(bool(ABSENT), reason=f"not installed: {', '.join(ABSENT)}"),
]

STACK = "machines"
NEW_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ"


@pytest.fixture(scope="module")
def network() -> str:
    return f"10.{random.randrange(214, 250)}.{random.randrange(256)}.0/24"


@pytest.fixture(scope="module")
def handover(pulumi: EngineRunner, network: str) -> dict[str, Any]:
    """Two machines that are up."""
    describe(pulumi, network, count=2)
    pulumi.up(STACK)
    return pulumi.cluster(STACK)


def describe(pulumi: EngineRunner, network: str, count: int, **access: str) -> None:
    pulumi.write(
        STACK,
        cloud="local",
        isolation="machine",
        network={"cidr": network},
        nodes=[{"name": "node", "count": count}],
        storage=[{"name": "data", "kind": "folder", "mount": "/data"}],
        **({"access": access} if access else {}),
    )


def ssh(pulumi: EngineRunner, node: str, command: str) -> str:
    words = ["ssh", "-F", str(pulumi.site(STACK) / "ssh_config"), node, command]
    answer = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return answer.stdout.strip() or f"exit {answer.returncode}: {answer.stderr}"


@pytest.mark.usefixtures("handover")
def test_a_machine_is_a_computer_of_its_own(pulumi: EngineRunner) -> None:
    assert ssh(pulumi, "node-1", "systemctl is-system-running") == "running"
    assert ssh(pulumi, "node-1", "hostname; sudo id -u; cat /proc/1/comm").splitlines() == ["node-1", "0", "systemd"]
    assert ssh(pulumi, "node-1", "ls /sys/class/net").split() == ["eth0", "lo"]
    assert ssh(pulumi, "node-2", "cat /etc/machine-id") != ssh(pulumi, "node-1", "cat /etc/machine-id")


def test_machines_reach_each_other_and_this_computer(pulumi: EngineRunner, handover: dict[str, Any]) -> None:
    other, port = handover["nodes"][1]["address"], handover["nodes"][1]["port"]

    assert ssh(pulumi, "node-1", f"head -c 4 < /dev/tcp/{other}/{port}") == "SSH-"
    assert ssh(pulumi, "node-1", f"ip route get {handover['store']['address']} | head -1").startswith(
        handover["store"]["address"]
    )


def test_the_environment_of_this_computer_is_shared_and_cannot_be_changed(
    pulumi: EngineRunner, handover: dict[str, Any]
) -> None:
    python = handover["environment"]["python"]

    assert ssh(pulumi, "node-1", f"{python} -c 'import ssl, numpy; print(numpy.ones(3).sum())'") == "3.0"
    assert "Read-only file system" in ssh(pulumi, "node-1", f"sudo touch {Path(python).parent}/x 2>&1")


@pytest.mark.usefixtures("handover")
def test_storage_is_shared_by_all_machines(pulumi: EngineRunner) -> None:
    ssh(pulumi, "node-1", "echo kept > /data/file")

    assert ssh(pulumi, "node-2", "cat /data/file") == "kept"


@pytest.mark.usefixtures("handover")
def test_new_keys_do_not_follow_the_links_of_a_machine_to_files_of_this_computer(
    pulumi: EngineRunner, network: str, tmp_path: Path
) -> None:
    victim, keys = tmp_path / "authorized_keys", "/home/ops/.ssh/authorized_keys"
    victim.write_text("the host's own\n")
    about = victim.stat()
    ssh(pulumi, "node-1", f"rm {keys} && ln -s {victim} {keys}")
    describe(pulumi, network, count=2, public_key=NEW_KEY)

    pulumi.up(STACK)

    now = victim.stat()
    assert (now.st_ino, now.st_mode, now.st_uid, now.st_mtime_ns) == (
        about.st_ino,
        about.st_mode,
        about.st_uid,
        about.st_mtime_ns,
    )
    assert victim.read_text() == "the host's own\n"
    assert NEW_KEY in ssh(pulumi, "node-1", f"cat {keys}").splitlines()


@pytest.mark.usefixtures("handover")
def test_a_machine_survives_its_own_reboot_and_refresh_waits_for_it(pulumi: EngineRunner) -> None:
    before = ssh(pulumi, "node-2", "cat /proc/sys/kernel/random/boot_id; sudo systemctl reboot").splitlines()[0]

    pulumi.up(STACK, "--refresh", "--expect-no-changes")

    assert ssh(pulumi, "node-2", "cat /proc/sys/kernel/random/boot_id") != before


def test_a_machine_that_was_taken_away_is_missed_by_refresh_and_made_again(
    pulumi: EngineRunner, handover: dict[str, Any]
) -> None:
    runner = int((pulumi.site(STACK) / "nodes" / "node-1" / "sshd" / "pid").read_text())
    take_away(runner)

    pulumi.up(STACK, "--refresh")

    assert ssh(pulumi, "node-1", "systemctl is-system-running") == "running"
    assert pulumi.cluster(STACK)["nodes"][1] == handover["nodes"][1]


def test_destroy_leaves_nothing_also_of_an_up_that_was_killed(pulumi: EngineRunner, network: str) -> None:
    pulumi.destroy(STACK)
    describe(pulumi, network, count=3)
    before = traces(pulumi.root)
    assert not [trace for trace in before if "process" in trace]

    def some_are_wired() -> bool:
        return sum("namespace" in line for line in sweep.left_behind(pulumi.site(STACK))) >= 2

    pulumi.stop(signal.SIGKILL, some_are_wired, "up", "--yes", "--skip-preview", "--stack", STACK)
    pulumi("cancel", "--yes", STACK)
    pulumi.destroy(STACK)

    until(lambda: traces(pulumi.root) == before)


def take_away(runner: int) -> None:
    """What a cloud does when it reclaims a machine: no warning, and at once nothing of it runs any more."""
    table = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    parents = {int(pid): int(parent) for pid, parent in (line.split() for line in table.splitlines())}
    doomed = [runner]
    for process in doomed:
        doomed += [child for child, parent in parents.items() if parent == process]
    for process in doomed:
        with suppress(ProcessLookupError):  # it went with its machine
            os.kill(process, signal.SIGKILL)
