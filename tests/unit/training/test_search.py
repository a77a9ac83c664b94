"""Hyper-parameter search: what a search file may say, and that a study is shared, pruned and resumed."""

from __future__ import annotations

from pathlib import Path

import pytest
from optuna.trial import Trial, TrialState

from training import search
from training.config import JobError
from training.report import Evaluation
from training.search.plan import Range, read
from training.search.study import Judged, Outcome, opened, outcomes, work

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


@pytest.mark.drill
def test_two_workers_share_a_study(file: Path):
    assert search.main(["search", str(file), "--workers", "2"]) == 0

    assert sum(trial.state == "finished" for trial in outcomes(read(file))) >= 3
