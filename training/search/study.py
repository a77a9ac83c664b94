"""The Optuna study, an SQLite file that any number of workers share, and the trials of a worker."""

from __future__ import annotations

import subprocess
import warnings
from dataclasses import asdict, dataclass
from typing import Any

import optuna
from optuna.exceptions import ExperimentalWarning
from optuna.storages import RDBStorage, RetryHeartbeatStaleTrialCallback
from optuna.trial import Trial, TrialState
from torch import OutOfMemoryError

from training.config.job import JobError
from training.loop import train
from training.metrics.divergence import TrainingDivergedError
from training.metrics.events import Evaluation, Report
from training.search.plan import Plan, Range

HEARTBEAT_SECONDS, GRACE_SECONDS = 10, 40  # a worker that is silent for longer is dead, and its trial is tried again
STARTUP_TRIALS = 5  # tried at random, and never pruned, before the others are judged by them
INTERRUPTED = 130
ENDS = {TrialState.COMPLETE: "finished", TrialState.FAIL: "failed"}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A trial: finished, pruned, failed or running; its values by key, and the share of the fold that it got right."""

    number: int
    state: str
    accuracy: float | None
    values: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Judged(Report):
    """Tells the study every evaluation, and ends a trial that lags behind the others' median."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial

    def evaluation(self, evaluation: Evaluation) -> None:
        self._trial.report(evaluation.accuracy, evaluation.step)
        if self._trial.should_prune():
            raise optuna.TrialPruned


def opened(plan: Plan) -> optuna.Study:
    """The study of a search, new or as it was left."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore", ExperimentalWarning)  # heartbeats: pinned by the lock, proven by the tests
    plan.out.mkdir(parents=True, exist_ok=True)
    storage = RDBStorage(
        f"sqlite:///{plan.study}",
        engine_kwargs={"connect_args": {"timeout": 60}},
        heartbeat_interval=HEARTBEAT_SECONDS,
        grace_period=GRACE_SECONDS,
        heartbeat_stale_trial_callback=RetryHeartbeatStaleTrialCallback(max_retry=2),
    )
    return optuna.create_study(
        storage=storage,
        study_name="search",
        direction="maximize",
        load_if_exists=True,
        sampler=optuna.samplers.TPESampler(n_startup_trials=STARTUP_TRIALS, constant_liar=True),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=STARTUP_TRIALS),
    )


def work(plan: Plan) -> int:
    """Tries until the study has all its trials; returns 0."""
    study = opened(plan)
    ended = (TrialState.COMPLETE, TrialState.PRUNED)
    enough = optuna.study.MaxTrialsCallback(plan.trials, states=ended)
    if len(study.get_trials(deepcopy=False, states=ended)) < plan.trials:
        study.optimize(lambda trial: attempt(plan, trial), callbacks=[enough])
    return 0


def attempt(plan: Plan, trial: Trial) -> float:
    """A trial's accuracy on its fold. Values that no job can have together, or that ruin a run, are pruned."""
    values = {key: suggested(trial, key, among) for key, among in plan.space.items()}
    try:
        result = train(plan.job_of(trial.number, values), report=Judged(trial))
    except (JobError, TrainingDivergedError, OutOfMemoryError) as why:
        print(f"trial {trial.number}: {why} {values}", flush=True)
        raise optuna.TrialPruned from why
    assert result.accuracy is not None
    print(f"trial {trial.number}: {result.accuracy:.2%} {values}", flush=True)
    return result.accuracy


def suggested(trial: Trial, key: str, among: Range | list[Any]) -> Any:
    if isinstance(among, list):
        return trial.suggest_categorical(key, among)
    if isinstance(among.low, int) and isinstance(among.high, int):
        return trial.suggest_int(key, among.low, among.high, log=among.log)
    return trial.suggest_float(key, among.low, among.high, log=among.log)


def outcomes(plan: Plan) -> list[Outcome]:
    """All trials, the best first, those without an accuracy last."""
    trials = [
        Outcome(
            number=trial.number,
            state=ENDS.get(trial.state, trial.state.name.lower()),
            accuracy=trial.value if trial.state == TrialState.COMPLETE else None,
            values=trial.params,
        )
        for trial in opened(plan).get_trials(deepcopy=False)
    ]
    return sorted(trials, key=lambda trial: (trial.accuracy is None, -(trial.accuracy or 0)))


def leave(running: list[subprocess.Popen[bytes]]) -> int:
    """Ends the workers after Ctrl-C; their trials are tried again by the next start."""
    for worker in running:
        worker.terminate()
    for worker in running:
        worker.wait()
    return INTERRUPTED
