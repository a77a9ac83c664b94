"""Real training under the launcher: whatever happens to it, the weights are those of a run that nothing happened to."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
import torch
from launched import Launchers, launchers

from training.config import load
from training.loop import train


@pytest.fixture(scope="module")
def launch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launchers]:
    with launchers(tmp_path_factory.mktemp("launch")) as starting:
        yield starting


@pytest.fixture(scope="module")
def undisturbed(launch: Launchers) -> Iterator[str]:
    """The digest of the run that nothing happens to. Its gradients are summed by logical shards, so one rank will
    do."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield train(load(launch.job("undisturbed"), [])).digest
    torch.set_num_threads(threads)


def test_a_killed_rank_costs_a_few_steps_and_changes_nothing(launch: Launchers, undisturbed: str) -> None:
    job = launch("--nproc", "2", out="killed", OMP_NUM_THREADS="1")
    job.until(lambda: job.steps() and job.steps()[-1] > 12)

    os.kill(job.ranks()[1], signal.SIGKILL)
    code, said = job.end()

    assert code == 0
    assert "was killed by SIGKILL; starting again at step" in said
    assert job.result()["digest"] == undisturbed
    assert job.result()["restarts"] == 1
    assert job.result()["lost_steps"] < 2 * 5  # an interval, and one whose save was under way


def test_a_stopped_job_goes_on_where_it_stopped(launch: Launchers, undisturbed: str) -> None:
    job = launch("--nproc", "2", out="stopped", OMP_NUM_THREADS="1")
    job.until(lambda: job.steps() and job.steps()[-1] > 12)

    job.ask(signal.SIGTERM)
    code, said = job.end()
    stopped_at = job.checkpoints()[-1]
    assert code == 75
    assert f"stopped by SIGTERM; the next launch goes on at step {stopped_at}" in said

    job = launch(out="stopped", OMP_NUM_THREADS="1")
    assert job.end() == (0, "")
    assert stopped_at < 60
    assert job.steps() == list(range(1, 61))
    assert job.result()["lost_steps"] == 0
    assert job.result()["digest"] == undisturbed


def test_a_node_that_joins_late_trains_with_the_first_and_may_leave_again(launch: Launchers) -> None:
    _, where = launch.store()
    options = ("--nproc", "1", "--nnodes", "1:2", "--store", where)
    first = launch(*options, out="joined", steps=100_000)
    first.until(first.steps)

    second = launch(*options, out="joined", steps=100_000)
    second.until(second.ranks)
    second.ask(signal.SIGTERM)
    assert second.end()[0] == 75
    together = second.result()

    left_at = together["steps"]
    first.until(lambda: first.steps()[-1] > left_at)
    first.ask(signal.SIGTERM)
    code, said = first.end()

    assert (together["world_size"], first.result()["world_size"]) == (2, 1)
    assert code == 75
    assert f"another node left or joined; starting again at step {left_at}" in said
    assert first.result()["lost_steps"] == 0
