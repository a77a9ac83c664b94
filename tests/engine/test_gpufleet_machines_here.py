"""`gpufleet train` on machines of this computer: jobs run as a login of their own, from `up` to a resumed result."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from engine_runner import EngineRunner, until
from test_gpufleet_local import JOB, Gpufleet

from infra.clouds.local.nodes import machine

REPOSITORY = Path(__file__).resolve().parents[2]
STACK = "boxes"
ABSENT = [tool for tool in machine.TOOLS if not shutil.which(tool)]
STEPS = 60

pytestmark = [
    pytest.mark.drill,
    pytest.mark.skipif(os.geteuid() != 0, reason="machines need root"),
    pytest.mark.skipif(bool(ABSENT), reason=f"not installed: {', '.join(ABSENT)}"),
]


@pytest.fixture(scope="module")
def gpufleet(pulumi: EngineRunner) -> Gpufleet:
    """Two machines that are ready."""
    (pulumi.root / "playbooks").symlink_to(REPOSITORY / "playbooks")
    (pulumi.root / "training").symlink_to(REPOSITORY / "training")
    cluster = {
        "cloud": "local",
        "isolation": "machine",
        "network": {"cidr": f"10.{random.randrange(214, 250)}.{random.randrange(256)}.0/24"},
        "nodes": [{"name": "node", "count": 2}],
        "storage": [{"name": "data", "kind": "folder", "mount": "/data"}],
    }
    (pulumi.root / "stacks" / f"Pulumi.{STACK}.yaml").write_text(json.dumps({"config": {"gpufleet:cluster": cluster}}))
    gpufleet = Gpufleet(pulumi.root, pulumi.environment)
    gpufleet.json("up", STACK)
    return gpufleet


def job(gpufleet: Gpufleet, name: str) -> str:
    """A job of its own name, so that it is a run of its own."""
    file = gpufleet.root / f"{name}.toml"
    file.write_text(JOB.format(steps=STEPS))
    return str(file)


def node_says(gpufleet: Gpufleet, line: str) -> str:
    config = gpufleet.root / ".gpufleet" / "local" / STACK / "ssh_config"
    words = ["ssh", "-F", str(config), "node-1", line]
    return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False).stdout


def test_a_job_that_was_stopped_and_resumed_as_the_login_of_jobs_ends_with_the_same_bits(gpufleet: Gpufleet) -> None:
    runs = gpufleet.root / ".gpufleet" / "runs" / STACK
    whole = gpufleet.json("train", job(gpufleet, "whole"), "--stack", STACK)
    command = gpufleet.start("train", job(gpufleet, "parted"), "--stack", STACK, "--set", "checkpoint.every_steps=1000")
    events = runs / "parted-1" / "events.jsonl"
    until(lambda: events.exists() and '"step"' in events.read_text(), command)
    as_whom = node_says(gpufleet, "ps -eo user:20,args | grep -c '^gpufleet-job .*training'; sudo ps -eo user:20,args")
    command.send_signal(signal.SIGINT)
    _, complained = command.communicate()

    document = gpufleet.json("train", job(gpufleet, "parted"), "--stack", STACK, "--set", "checkpoint.every_steps=1000")

    unseen, *processes = as_whom.splitlines()
    trained = [line.split()[0] for line in processes if "-m training" in line and "sudo" not in line]
    assert (command.returncode, "resumes parted-1" in complained) == (75, True), complained
    assert (unseen, set(trained)) == ("0", {"gpufleet-job"})
    assert (document["resumed"], document["lost_steps"], document["steps"]) == (True, 0, STEPS)
    assert document["digest"] == whole["digest"]
