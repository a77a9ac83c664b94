"""Real training under the launcher: whatever happens to it, the weights are those of a run that nothing happened to."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
import torch
from launched import Launchers, launchers

from training.config.job import load
from training.loop import train

STEPS = 600  # enough that the job still runs when a loaded machine lets this process look


@pytest.fixture(scope="module")
def launch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launchers]:
    with launchers(tmp_path_factory.mktemp("launch")) as starting:
        yield starting


@pytest.fixture(scope="module")
def undisturbed(launch: Launchers) -> Iterator[str | None]:
    """The digest of the run that nothing happens to. Its gradients are summed by logical shards, so one rank will
    do."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield train(load(launch.job("undisturbed", STEPS), [])).digest
    torch.set_num_threads(threads)


def test_a_job_that_lost_a_rank_and_was_stopped_has_the_weights_of_one_that_went_through(
    launch: Launchers, undisturbed: str | None
) -> None:
    job = launch("--nproc", "2", steps=STEPS, OMP_NUM_THREADS="1")
    job.until(lambda: job.steps() and job.steps()[-1] > 12)
    os.kill(job.ranks()[1], signal.SIGKILL)
    job.until(lambda: job.steps()[-1] > 25)
    job.ask(signal.SIGTERM)
    code, said = job.end()
    stopped_at = job.checkpoints()[-1]

    assert code == 75
    assert "was killed by SIGKILL; restarting from step" in said
    assert f"stopped by SIGTERM; the next launch resumes at step {stopped_at}" in said

    job = launch(steps=STEPS, OMP_NUM_THREADS="1")
    assert job.end() == (0, "")
    assert stopped_at < STEPS
    assert job.steps() == list(range(1, STEPS + 1))
    assert job.result()["digest"] == undisturbed
    assert job.result()["restarts"] == 2
    assert job.result()["lost_steps"] < 2 * 5  # an interval, and one whose save was under way
