"""The command line on the real parts: engine, SSH hosts, Ansible and training processes, from `up` to `down`.

One stack serves the whole file; the tests follow its life in order.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from engine_runner import EngineRunner, runs, traces, until

from training.elastic.progress import newest_checkpoint

REPOSITORY = Path(__file__).resolve().parents[2]
STACK = "rehearsal"
JOB = """
name = "rehearsal"
steps = {steps}
[model]
kind = "cnn"
width = 4
[data]
kind = "synthetic"
global_batch = 16
samples = 64
held_out = 16
image_size = 8
[optimizer]
kind = "sgd"
lr = 0.05
[checkpoint]
every_steps = 5
"""


@dataclass(frozen=True)
class Gpufleet:
    """The command `gpufleet`, called in a project as a person would."""

    root: Path
    environment: dict[str, str]

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        with self.start(*arguments) as command:
            printed, complained = command.communicate()
        return subprocess.CompletedProcess(command.args, command.returncode, printed, complained)

    def json(self, *arguments: str) -> dict:
        answer = self(*arguments, "--json")
        assert answer.returncode == 0, answer.stderr
        return json.loads(answer.stdout)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "ops", *arguments],
            cwd=self.root,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def job(self, steps: int) -> str:
        file = self.root / "rehearsal.toml"
        file.write_text(JOB.format(steps=steps))
        return str(file)


@pytest.fixture(scope="module")
def gpufleet(pulumi: EngineRunner, loopback: str) -> Gpufleet:
    (pulumi.root / "playbooks").symlink_to(REPOSITORY / "playbooks")
    cluster = {
        "cloud": "local",
        "isolation": "process",
        "network": {"cidr": loopback},
        "nodes": [{"name": "node", "count": 2}],
        "storage": [{"name": "data", "kind": "folder", "mount": "/data"}],
    }
    file = pulumi.root / "stacks" / f"Pulumi.{STACK}.yaml"
    file.write_text(json.dumps({"config": {"gpufleet:cluster": cluster}}))
    return Gpufleet(pulumi.root, pulumi.environment)


def test_a_stack_that_is_not_up_is_told_with_the_way_on(gpufleet: Gpufleet) -> None:
    answers = [gpufleet("status", STACK), gpufleet("train", gpufleet.job(10), "--stack", STACK)]

    assert [a.returncode for a in answers] == [1, 1]
    assert {a.stderr for a in answers} == {f"stack {STACK} is not up: start it with `gpufleet up {STACK}`\n"}


def test_taking_down_what_is_not_up_is_no_error(gpufleet: Gpufleet) -> None:
    answer = gpufleet("down", STACK, "--yes")

    assert (answer.returncode, answer.stdout) == (0, f"stack {STACK} is not up: nothing to take down\n")


def test_ctrl_c_while_nodes_are_made_leaves_a_state_that_up_goes_on_from(gpufleet: Gpufleet) -> None:
    site = gpufleet.root / ".gpufleet" / "local" / STACK
    command = gpufleet.start("up", STACK)
    until(lambda: site.exists() or command.poll() is not None)
    command.send_signal(signal.SIGINT)
    _, complained = command.communicate()

    assert command.returncode == 130
    assert complained.startswith("interrupted: ")
    assert "Traceback" not in complained


def test_up_makes_nodes_that_say_themselves_that_they_are_ready(gpufleet: Gpufleet) -> None:
    document = gpufleet.json("up", STACK)

    assert [phase["phase"] for phase in document["phases"]] == ["nodes", "configure", "verify"]
    assert [node["state"] for node in gpufleet.json("status", STACK)["nodes"]] == ["ready", "ready"]


def test_a_wrong_job_file_is_refused_before_any_node_is_asked(gpufleet: Gpufleet) -> None:
    file = gpufleet.root / "wrong.toml"
    file.write_text(JOB.format(steps=0).replace("lr = 0.05", "lr = 'fast'"))

    answer = gpufleet("train", str(file), "--stack", STACK)

    assert answer.returncode == 2
    assert [line.split(": ")[0] for line in answer.stderr.splitlines()] == [
        "wrong.toml:3 steps",
        "wrong.toml:15 optimizer.lr",
    ]


def test_ctrl_c_stops_a_job_with_a_checkpoint_and_train_resumes_it_to_its_result(gpufleet: Gpufleet) -> None:
    command = gpufleet.start("train", gpufleet.job(100_000), "--stack", STACK)
    run = gpufleet.root / ".gpufleet" / "runs" / STACK / "rehearsal-1"
    events = run / "events.jsonl"
    until(lambda: events.exists() and '"step"' in events.read_text(), command)
    while_running = gpufleet.json("status", STACK)["run"]
    command.send_signal(signal.SIGINT)
    _, complained = command.communicate()
    out = gpufleet.root / ".gpufleet" / "local" / STACK / "storage" / "data" / "runs" / (run / "place").read_text()
    saved = newest_checkpoint(out)
    assert saved is not None
    steps = saved + 20  # what was told last may lie before it

    document = gpufleet.json("train", gpufleet.job(steps), "--stack", STACK)

    assert (while_running["name"], while_running["state"]) == ("rehearsal-1", "running")
    assert (command.returncode, "resumes rehearsal-1" in complained) == (75, True)
    assert (document["run"], document["resumed"], document["lost_steps"]) == ("rehearsal-1", True, 0)
    assert (document["world_size"], document["steps"], document["finished"]) == (2, steps, True)
    assert (run / "run.png").read_bytes().startswith(b"\x89PNG")
    assert [json.loads(line)["step"] for line in (run / "metrics.jsonl").read_text().splitlines()][-1] == steps


def test_a_killed_node_is_told_and_a_second_up_repairs_it_and_changes_nothing_else(gpufleet: Gpufleet) -> None:
    server = gpufleet.root / ".gpufleet" / "local" / STACK / "nodes" / "node-2" / "sshd" / "pid"
    os.kill(int(server.read_text()), signal.SIGKILL)

    broken = {node["name"]: node["state"] for node in gpufleet.json("status", STACK)["nodes"]}
    refused = gpufleet("train", gpufleet.job(10), "--stack", STACK)
    document = gpufleet.json("up", STACK)
    repaired = {node["name"]: node["state"] for node in gpufleet.json("status", STACK)["nodes"]}

    assert broken == {"node-1": "ready", "node-2": "unreachable"}
    assert refused.returncode == 1
    assert f"`gpufleet up {STACK}` makes the nodes ready" in refused.stderr
    assert repaired == {"node-1": "ready", "node-2": "ready"}
    assert re.search(r"node-1 ok=\d+ changed=0 ", document["phases"][1]["note"])


def test_the_environment_of_the_engine_is_printed_for_a_shell(gpufleet: Gpufleet) -> None:
    script = f'eval "$({sys.executable} -m ops env)" && pulumi stack output cluster --stack {STACK}'

    answer = subprocess.run(["bash", "-c", script], cwd=gpufleet.root, capture_output=True, text=True, check=True)

    assert json.loads(answer.stdout)["stack"] == STACK


def test_down_leaves_no_process_no_file_and_no_mount(gpufleet: Gpufleet) -> None:
    answer = gpufleet("down", STACK, "--yes")

    assert answer.returncode == 0, answer.stderr
    assert "nothing left behind" in answer.stdout
    until(lambda: not traces(gpufleet.root))  # Ansible's shared connections end by themselves


@pytest.mark.drill
@pytest.mark.parametrize(
    ("command", "work"),
    [
        (("up", STACK), "pulumi-language-python"),
        (("up", STACK), "gpu_node.yml"),
        (("down", STACK, "--yes"), "destroy"),
    ],
)
def test_ctrl_c_in_any_phase_is_one_line_and_down_takes_all_away(
    gpufleet: Gpufleet, command: tuple[str, ...], work: str
) -> None:
    if command[0] == "down":
        gpufleet.json("up", STACK)
    started = gpufleet.start(*command)
    until(lambda: runs(gpufleet.root, work) or started.poll() is not None)
    started.send_signal(signal.SIGINT)
    _, complained = started.communicate()

    answer = gpufleet("down", STACK, "--yes")

    assert started.returncode == 130, complained
    assert [line.partition(":")[0] for line in complained.splitlines()][-1] == "interrupted"
    assert "Traceback" not in complained
    assert answer.returncode == 0, answer.stderr
    until(lambda: not traces(gpufleet.root))
