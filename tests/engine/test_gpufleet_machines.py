"""Own machines through the real engine and the real commands; the process nodes of this computer play the hosts.

One stack serves the whole file; the tests follow its life in order.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from engine_runner import EngineRunner, until

from infra.clouds.local.nodes import process, processes, site
from infra.clouds.local.nodes.site import NodeSpec
from infra.clouds.machines.plan import MachinesPlan
from infra.evaluate import decide
from infra.spec import load
from ops.clouds.machines import cloud as machines
from ops.errors import CommandError
from ops.project import Project

pytestmark = pytest.mark.skipif(bool(process.problems()), reason="; ".join(process.problems()))

REPOSITORY = Path(__file__).resolve().parents[2]
STACK = "hall"
PORT = 2222
HCA = {"state": "4: ACTIVE", "link_layer": "InfiniBand", "rate": "400 Gb/sec (4X NDR)", "sm_lid": "0x1"}
JOB = """
name = "tiny"
steps = 6
[model]
kind = "cnn"
width = 4
[data]
kind = "synthetic"
global_batch = 8
samples = 16
held_out = 8
image_size = 8
[optimizer]
kind = "sgd"
lr = 0.05
[checkpoint]
every_steps = 3
"""


@dataclass(frozen=True)
class Hall:
    """Two hosts with an RDMA port each, and the command that is called for them."""

    pulumi: EngineRunner
    hosts: tuple[NodeSpec, ...]

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "ops", *arguments],
            cwd=self.pulumi.root,
            env=self.pulumi.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def describe(self, **more: Any) -> None:
        first = self.hosts[0]
        hosts = [
            {
                "name": host.name,
                "address": host.address,
                "port": host.port,
                "host_key": host.host_key,
                "prefix": str(host.folder),
                "bmc": host.address,
            }
            for host in self.hosts
        ]
        cluster = {
            "cloud": "machines",
            "access": {"user": site.login("process"), "key_file": str(first.site / "key"), "control": "127.0.0.1"},
            "python": str(REPOSITORY / ".venv" / "bin" / "python"),
            "nodes": [
                {
                    "name": "host",
                    "fabric": {"kind": "infiniband", "hcas": ["mlx5_0"], "gbits": 400},
                    "hosts": hosts,
                }
            ],
            "storage": [{"name": "data", "kind": "folder", "mount": str(first.site / "storage" / "data")}],
            **more,
        }
        file = self.pulumi.root / "stacks" / f"Pulumi.{STACK}.yaml"
        file.write_text(json.dumps({"config": {"gpufleet:cluster": cluster}}))

    def cloud(self) -> machines.Cloud:
        plan = decide(load(self.pulumi.root, STACK))
        assert isinstance(plan, MachinesPlan)
        return machines.Cloud(Project(self.pulumi.root), plan)

    def port(self, host: NodeSpec, **changed: str) -> None:
        """Shows the port of a host's HCA as the kernel would, below the host's prefix."""
        folder = host.folder / "sys" / "class" / "infiniband" / "mlx5_0" / "ports" / "1"
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in {**HCA, **changed}.items():
            (folder / name).write_text(f"{text}\n")


@pytest.fixture(scope="module")
def hall(pulumi: EngineRunner, loopback: str) -> Hall:
    (pulumi.root / "playbooks").symlink_to(REPOSITORY / "playbooks")
    network = loopback.removesuffix("0/24")
    hosts = tuple(
        NodeSpec(
            site=pulumi.site("hosts"),
            name=f"host-{i}",
            address=f"{network}{10 + i}",
            port=PORT,
            public_keys=(),
            storage={"data": "/data"},
            machine=None,
        )
        for i in (1, 2)
    )
    created = Hall(pulumi, hosts)
    for host in hosts:
        process.create(host)
        created.port(host)
    created.describe()
    return created


@pytest.mark.drill
def test_a_port_without_a_subnet_manager_stops_up_with_its_name(hall: Hall) -> None:
    hall.port(hall.hosts[1], sm_lid="0x0", state="2: INIT")

    answer = hall("up", STACK, "--yes")

    hall.port(hall.hosts[1])
    assert answer.returncode == 1
    assert "host-2: RDMA ports: mlx5_0: port is INIT and waits for a subnet manager" in answer.stderr


def test_up_configures_the_hosts_and_proves_them_ready(hall: Hall) -> None:
    answer = hall("up", STACK, "--yes", "--json")

    assert answer.returncode == 0, answer.stderr
    phases = {phase["phase"]: phase["note"] for phase in json.loads(answer.stdout)["phases"]}
    assert phases["verify"] == "2 ready"


@pytest.mark.drill
def test_a_second_up_changes_nothing(hall: Hall) -> None:
    hall("up", STACK, "--yes")

    answer = hall("up", STACK, "--yes", "--json")

    assert answer.returncode == 0, answer.stderr
    phases = {phase["phase"]: phase["note"] for phase in json.loads(answer.stdout)["phases"]}
    assert "changed=0" in phases["configure"]
    assert "unchanged" in hall.pulumi("preview", "--expect-no-changes", "--stack", STACK).stdout


def test_a_job_runs_on_the_hosts_with_the_fabrics_settings(hall: Hall) -> None:
    job = hall.pulumi.root / "tiny.toml"
    job.write_text(JOB)

    answer = hall("train", str(job), "--stack", STACK, "--json")

    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["steps"] == 6


def test_a_silent_host_is_woken_by_its_bmc(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machines, "BOOT_POLL_SECONDS", 0.1)
    host, woken = hall.hosts[1], hall.pulumi.root / "woken"
    listen = f"import socket, time; s = socket.create_server(({host.address!r}, {PORT})); time.sleep(20)"
    wake = (
        f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {listen!r}], stdout=-3, stderr=-3); "
        f"open({str(woken)!r}, 'w').write(' '.join(sys.argv[1:]))"
    )
    hall.describe(power={"wake": [sys.executable, "-c", wake, "{host}", "{bmc}"]})
    os.kill(int((host.service / "pid").read_text()), signal.SIGTERM)
    until(lambda: processes.is_free(host.address, PORT))

    hall.cloud().require_capacity()

    assert woken.read_text() == f"host-2 {host.address}"


def test_a_host_that_stays_silent_is_named_with_the_remedy(hall: Hall) -> None:
    hall.describe()
    os.kill(int((hall.hosts[0].service / "pid").read_text()), signal.SIGTERM)
    until(lambda: processes.is_free(hall.hosts[0].address, PORT))

    with pytest.raises(CommandError, match=r"^host-1 does not answer on .*: switch it on, or set `power.wake`$"):
        hall.cloud().require_capacity()


def test_down_asks_every_host_to_sleep_and_goes_on_after_one_that_did_not(hall: Hall) -> None:
    broken, asked = hall.pulumi.root / "broken", hall.pulumi.root / "asked"
    broken.touch()
    sleep = (
        f"import pathlib, sys; open({str(asked)!r}, 'a').write(sys.argv[1] + '\\n'); "
        f"sys.exit('no BMC there' if sys.argv[1] == 'host-1' and pathlib.Path({str(broken)!r}).exists() else 0)"
    )
    hall.describe(power={"sleep": [sys.executable, "-c", sleep, "{host}"]})

    failed = hall("down", STACK, "--yes")
    broken.unlink()
    answer = hall("down", STACK, "--yes")
    again = hall("down", STACK, "--yes")

    assert failed.returncode == 1
    assert "for host-1: no BMC there" in failed.stderr
    assert answer.returncode == 0, answer.stderr
    assert asked.read_text().split() == ["host-1", "host-2"] * 2
    assert "nothing to take down" in again.stdout
    assert all((host.folder / "etc").is_dir() for host in hall.hosts)
    assert STACK not in hall.pulumi("stack", "ls", "--json").stdout
