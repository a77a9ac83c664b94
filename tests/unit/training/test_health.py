"""What ends a run that goes wrong."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from training.config.job import Job, JobError
from training.config.run import Health
from training.elastic.heartbeat import BEAT_FILE, Heartbeat, silent_seconds
from training.elastic.system import SystemClock
from training.loop import train
from training.metrics.divergence import Losses, TrainingDivergedError


def watched(losses: Losses, values: list[float]) -> None:
    """One report a step."""
    for step, value in enumerate(values, 1):
        losses.watch(torch.tensor(value))
        losses.check(step, *losses.sums().tolist())


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -float("inf")])
def test_a_loss_that_is_no_number_ends_the_run_at_the_next_report(wrong: float):
    losses = Losses(Health(), scaled=False)
    watched(losses, [2.0, 1.9])
    losses.watch(torch.tensor(wrong))
    losses.watch(torch.tensor(1.8))  # as the step of a report may again be

    with pytest.raises(TrainingDivergedError, match="a loss between steps 3 and 4 is not finite"):
        losses.check(4, *losses.sums().tolist())


def test_watching_losses_waits_for_no_device():
    losses = Losses(Health(), scaled=False)
    for _ in range(3):
        losses.watch(torch.empty((), device="meta"))  # it has no value yet: who asks for it gets an error

    assert losses.sums().is_meta


def test_loss_scaling_and_who_says_so_may_have_such_steps():
    watched(Losses(Health(), scaled=True), [float("inf"), 1.0])
    watched(Losses(Health(finite=False), scaled=False), [float("nan"), 1.0])


def test_a_jump_ends_the_run_and_noise_does_not():
    noise = [2.0, 2.4, 1.7, 2.2, 2.1, 3.9]
    watched(Losses(Health(spike=2), scaled=False), noise)

    with pytest.raises(TrainingDivergedError, match=r"the loss jumped to 4\.5 at step 7, 2\.\d times what it was"):
        watched(Losses(Health(spike=2), scaled=False), [*noise, 4.5])


def test_a_run_that_diverges_ends_and_leaves_no_checkpoint_without_numbers(small: Callable[..., Job]):
    job = small("optimizer.kind=sgd", "optimizer.lr=1e30", "checkpoint.every_steps=1", "log_every=6")

    with pytest.raises(TrainingDivergedError, match="is not finite"):
        train(job)

    steps = [int(folder.name[5:]) for folder in (job.out / "checkpoints").glob("step-*")]
    assert max(steps, default=0) < 6


class SetClock(SystemClock):
    """A monotonic clock that the test sets."""

    seconds = 1.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def beats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "rank-0.beat"
    monkeypatch.setenv(BEAT_FILE, str(file))
    return file


def test_a_rank_is_watched_between_its_first_beat_and_its_rest(beats: Path):
    heart = Heartbeat()
    assert silent_seconds(beats) == 0

    heart.beat()
    assert silent_seconds(beats) < 5
    os.utime(beats, (0, time.monotonic() - 100))
    assert silent_seconds(beats) == pytest.approx(100, abs=5)

    heart.rest()
    assert silent_seconds(beats) == 0
    heart.beat()
    assert beats.exists()


def test_a_node_whose_time_is_put_right_has_no_silent_rank(beats: Path, monkeypatch: pytest.MonkeyPatch):
    Heartbeat().beat()

    later = time.time() + 3600
    monkeypatch.setattr(time, "time", lambda: later)

    assert silent_seconds(beats) < 5


def test_a_step_may_be_short_and_yet_the_file_is_touched_no_more_than_twice_a_second(
    beats: Path, monkeypatch: pytest.MonkeyPatch
):
    clock = SetClock()
    heart = Heartbeat(clock)
    touched: list[float] = []
    monkeypatch.setattr(os, "utime", lambda _, times: touched.append(times[1] - 1))

    for step in range(1000):  # of 10 ms each
        clock.seconds = 1 + step / 100
        heart.beat()

    assert touched == pytest.approx([n / 2 for n in range(20)], abs=0.02)


def test_a_rank_that_waits_for_its_peers_is_not_taken_for_a_silent_one(small: Callable[..., Job]):
    with pytest.raises(JobError, match=r"health\.hang_seconds: must be more than step_seconds = 120"):
        small("health.hang_seconds=60")
