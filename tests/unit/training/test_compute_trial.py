"""`compute = "auto"`: what is chosen, that it is kept, and that the trial leaves the model as it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch
from trained import After

from training import data, models, trial
from training.checkpoint.digest import digest
from training.config import Job
from training.dist import connect
from training.loop import train
from training.trial import PLAIN, Mode, candidates, chosen

BF16 = Mode(compute="bf16", channels_last=True)


def test_the_fastest_mode_is_chosen_only_where_it_is_clearly_faster():
    assert chosen([PLAIN, BF16], [1.0, 0.5]) == BF16
    assert chosen([PLAIN, BF16], [1.0, 0.99]) == PLAIN
    assert chosen([PLAIN, BF16], [1.0, 2.0]) == PLAIN


def test_text_has_no_layout_to_choose():
    assert {mode.channels_last for mode in candidates(torch.device("cpu"), images=False)} == {False}


def test_the_trial_leaves_the_model_as_it_was(small: Callable[..., Job]):
    job = small("precision.compute=auto", "model.norm=batch")
    found = data.load(job)
    model = models.build(job, found)
    before = digest(model.state_dict())

    with connect(60) as ranks:
        trial.settled(job, ranks, model, found)

    assert digest(model.state_dict()) == before


@pytest.mark.parametrize("seconds_a_sample", [0.0001, 0.02, 0.15])
def test_the_trial_keeps_its_time(seconds_a_sample: float, small: Callable[..., Job], monkeypatch: pytest.MonkeyPatch):
    clock = 0.0

    def timed(job: Job, model: object, inputs: torch.Tensor, *_: object) -> float:
        nonlocal clock
        clock += len(inputs) * seconds_a_sample
        return len(inputs) * seconds_a_sample

    monkeypatch.setattr(trial, "timed", timed)
    monkeypatch.setattr(trial, "time", SimpleNamespace(monotonic=lambda: clock))
    modes = candidates(torch.device("cpu"), images=True)

    trial.trial(small(), torch.nn.Linear(1, 1), torch.zeros(64, 1), torch.zeros(64), modes, torch.device("cpu"))

    assert clock <= trial.SECONDS


def test_a_choice_is_kept_by_the_run_and_told(small: Callable[..., Job], monkeypatch: pytest.MonkeyPatch):
    job = small("precision.compute=auto", "steps=4")
    monkeypatch.setattr(trial, "chosen", lambda modes, seconds: BF16)
    stopped = train(job, stop=After(2))
    monkeypatch.setattr(trial, "chosen", lambda modes, seconds: pytest.fail("tried again"))

    finished = train(job)

    assert (stopped.finished, finished.finished) == (False, True)
    assert (finished.compute, finished.channels_last) == ("bf16", True)
    assert json.loads((job.out / "result.json").read_text())["compute"] == "bf16"


def test_without_auto_the_jobs_own_mode_stands(small: Callable[..., Job]):
    result = train(small("steps=1", "precision.compute=bf16", "model.channels_last=false"))

    assert (result.compute, result.channels_last) == ("bf16", False)
