"""Which of a launcher's lines are events, and the error of a job in a cluster that cannot be stopped."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from queue import Queue

import pytest
from kubernetes import client

from infra.clouds.kubernetes.plan.model import KubernetesPlan
from infra.evaluate import decide
from infra.handover import Node
from infra.spec import load
from ops import untrusted
from ops.clouds.kubernetes.jobs import KubernetesRunner
from ops.errors import CommandError
from ops.jobs.base import Event, Job
from ops.jobs.runs import Run
from ops.jobs.workers import Worker

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("line", ['{"event": "st', "{'loss': 1}", '{"loss": 1}', "{}", "step 5", ""])
def test_other_lines_are_output_of_the_job(line: str) -> None:
    assert untrusted.event(line) is None


def test_a_worker_whose_last_line_was_cut_off_has_ended() -> None:
    program = 'print(\'{"event": "checkpoint", "step": 1}\'); print("{\'loss\': 1}"); print(\'{"event": "st\', end="")'
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    worker = Worker(Node.model_construct(name="node-1"), process)
    events: Queue[tuple[Worker, Event | None]] = Queue()

    worker.read(events)
    process.wait()

    assert [events.get_nowait()[1] for _ in range(2)] == [{"event": "checkpoint", "step": 1}, None]
    assert list(worker.output) == ["{'loss': 1}", '{"event": "st']


def test_a_job_that_cannot_be_stopped_is_reported_as_running(tmp_path: Path) -> None:
    plan = decide(load(REPOSITORY, "k8s-a100"))
    assert isinstance(plan, KubernetesPlan)
    nobody = client.Configuration(host="http://127.0.0.1:9")
    nobody.retries = False
    job = Job(Run(tmp_path / "gpt-1"), "", (), False, "")
    runner = KubernetesRunner(plan, job, client.ApiClient(nobody))

    with pytest.raises(CommandError, match=r"^gpt-1 is still running: (?s:.+)`kubectl .+ delete \w+ gpt-1` stops it$"):
        runner.stop()
