"""Hyper-parameter search: what a search file may say, and that a study is shared, pruned and resumed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from optuna.trial import Trial, TrialState

from training import search
from training.config.job import JobError
from training.metrics.events import Evaluation
from training.search.plan import Range, read
from training.search.study import Judged, Outcome, attempt, opened, outcomes, work

SEARCH = """\
job = "smoke"
trials = 3
eval_every = 5
out = "{out}"
[space]
"optimizer.lr" = {{low = 1e-3, high = 1e-1, log = true}}
model.width = [4, 8]
optimizer.warmup_steps = {{low = 0, high = 5}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "search.toml"
    path.write_text(SEARCH.format(out=tmp_path / "study"))
    return path


def test_a_search_varies_ranges_and_choices(file: Path):
    plan = read(file)

    assert plan.space == {
        "optimizer.lr": Range(low=1e-3, high=1e-1, log=True),
        "model.width": [4, 8],
        "optimizer.warmup_steps": Range(low=0, high=5),
    }
    assert type(plan.space["optimizer.warmup_steps"].low) is int  # pyright: ignore[reportAttributeAccessIssue]


def test_trials_are_judged_on_a_fold_of_the_training_set(file: Path):
    job = read(file).job_of(7, {"optimizer.lr": 0.5})

    assert (job.data.fold, job.eval.every_steps, job.optimizer.lr, job.out.name) == (0, 5, 0.5, "trial-0007")


def test_truth_values_are_tried_and_told_as_the_command_line_takes_them(file: Path):
    plan = read(file)
    best = Outcome(number=0, state="finished", accuracy=0.9, values={"augment.flip": True})

    assert plan.job_of(0, {"augment.flip": True}).augment.flip
    assert search.table(plan, [best]).endswith("--set augment.flip=true")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("trials = 3", "trials = 0", "search.toml:2 trials: must be 1 or more, is 0"),
        ("trials = 3", "trails = 3", "search.toml:2 trails: unknown key 'trails'; did you mean 'trials'?"),
        ("[4, 8]", "[4]", "search.toml:7 space.model.width: must be a list of two or more"),
        ("low = 1e-3, high", "high", "search.toml:6 space.optimizer.lr.low: is missing"),
        ("low = 1e-3", "low = 1", "search.toml:6 space.optimizer.lr.high: must be more than low = 1"),
        ("low = 1e-3", "low = 0", "search.toml:6 space.optimizer.lr.low: must be greater than 0 with log = true"),
        ('"smoke"', '"smkoe"', "smkoe is no file, and unknown job 'smkoe'; did you mean 'smoke'?"),
        ("model.width", "model.depth", "--set model.depth: unknown key 'depth'"),
    ],
)
def test_a_mistake_in_a_search_file_is_told_with_its_place(old: str, new: str, told: str, file: Path):
    file.write_text(file.read_text().replace(old, new))

    with pytest.raises(JobError) as error:
        read(file)

    assert str(error.value).startswith(told)


def narrow(trial: Trial) -> float:
    """A trial that finds nothing, whatever the width."""
    trial.suggest_categorical("model.width", [4, 8])
    return 0.0


def test_a_study_goes_on_where_it_was_left(file: Path, capsys: pytest.CaptureFixture[str]):
    plan = read(file)
    study = opened(plan)
    study.enqueue_trial({"optimizer.lr": 0.01, "model.width": 4, "optimizer.warmup_steps": 0})
    study.optimize(narrow, n_trials=1)
    study.optimize(lambda _: 0.0, n_trials=1)

    assert work(plan) == 0  # the one that is left
    assert work(plan) == 0  # none is left

    told = outcomes(plan)
    assert len(told) == 3
    assert told[0].accuracy is not None
    assert told[0].accuracy > 0
    assert set(told[0].values) == set(plan.space)
    assert "python -m training run smoke --set" in search.table(plan, told)


def test_a_trial_that_lags_behind_the_others_is_pruned(file: Path):
    study = opened(read(file))

    def judged(trial: Trial) -> float:
        accuracy = accuracies.pop(0)
        Judged(trial).evaluation(Evaluation(step=5, accuracy=accuracy, loss=1.0, seconds=1.0))
        return accuracy

    accuracies = [0.8, 0.9, 0.85, 0.8, 0.9, 0.2, 0.95]
    study.optimize(judged, n_trials=len(accuracies))

    assert [trial.number for trial in study.trials if trial.state is TrialState.PRUNED] == [5]


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("optimizer.lr", 1e30, "is not finite"),
        ("optimizer.warmup_steps", 50, "is larger than the run's 20 steps"),
    ],
)
def test_values_that_lead_nowhere_are_told_and_pruned(
    key: str, value: float, told: str, file: Path, capsys: pytest.CaptureFixture[str]
):
    file.write_text(
        SEARCH.partition("[space]")[0].format(out=file.parent / "study") + f'[space]\n"{key}" = [1, {value}]'
    )
    plan = read(file)
    study = opened(plan)
    study.enqueue_trial({key: value})

    study.optimize(lambda trial: attempt(plan, trial), n_trials=1)

    assert [trial.state for trial in outcomes(plan)] == ["pruned"]
    assert told in capsys.readouterr().out


LONG = SEARCH.replace('"smoke"', '"{job}"')


@pytest.mark.parametrize("how", ["Ctrl-C", "SIGTERM", "SIGKILL"])
def test_a_search_that_is_stopped_leaves_no_worker_and_no_trial_that_failed(how: str, tmp_path: Path):
    job = Path("training/jobs/smoke.toml").read_text().replace("steps = 20", "steps = 1000000")
    (tmp_path / "long.toml").write_text(job)
    file = tmp_path / "search.toml"
    file.write_text(LONG.format(out=tmp_path / "study", job=tmp_path / "long.toml"))
    command = [sys.executable, "-m", "training", "search", str(file), "--workers", "2"]
    search = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0)
    while len([*tmp_path.glob("study/trial-*/metrics.jsonl")]) < 2:
        assert search.poll() is None
        time.sleep(0.2)

    if how == "Ctrl-C":  # a terminal sends it to all
        os.killpg(search.pid, signal.SIGINT)
    else:
        search.send_signal(signal.Signals[how])
    said, errors = search.communicate(timeout=60)  # returns when no worker holds the pipes any more

    assert [trial.state for trial in outcomes(read(file))] == ["running", "running"]
    assert "Traceback" not in errors
    if how != "SIGKILL":
        assert (search.returncode, said.splitlines()[0][:8]) == (130, "2 trials")


def test_a_worker_that_is_killed_is_told_and_ends_the_search_with_1(
    file: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    python = file.with_name("python")
    python.write_text("#!/bin/sh\nkill -KILL $$\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))

    assert search.main(["search", str(file)]) == 1

    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("a worker was killed by SIGKILL; ")


@pytest.mark.drill
def test_two_workers_share_a_study(file: Path):
    assert search.main(["search", str(file), "--workers", "2"]) == 0

    assert sum(trial.state == "finished" for trial in outcomes(read(file))) >= 3
