"""How a job runs on a cluster of any kind: the contract of its runner, and the sequence of its steps."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ops.jobs.runs import Run

PREEMPTED = 75  # the exit code of a job that was stopped with a checkpoint

Event = dict[str, Any]  # one line of `--events`: see training.metrics.events
OnEvent = Callable[[Event], None]


@dataclass(frozen=True)
class Job:
    """What is to run. text: the job file. upload: its `checkpoint.upload`. overrides: `KEY=VALUE`. resumed: whether an
    earlier start of the run left a checkpoint. command: what a person types to run it again, in backquotes."""

    run: Run
    text: str
    overrides: tuple[str, ...]
    resumed: bool
    command: str
    upload: str | None = None


@dataclass(frozen=True)
class Outcome:
    """A run that has ended well: where its files lie on this computer, and whether it resumed from a checkpoint."""

    run: Run
    resumed: bool
    result: dict[str, Any]


class JobRunner(ABC):
    """One job on one cluster. `run` calls the methods in this order; any of them may raise CommandError.

    `prepare` and `close` do nothing unless a runner has something to prepare or to release.
    """

    job: Job

    def prepare(self, on_event: OnEvent) -> None:  # noqa: B027
        """Removes what an earlier start left, before the run counts as begun."""

    @abstractmethod
    def start(self, on_event: OnEvent) -> None:
        """Starts every rank. A Ctrl-C within it is the runner's own to handle: either KeyboardInterrupt, or the error
        of a stopped job."""

    @abstractmethod
    def follow(self, on_event: OnEvent) -> None:
        """Passes on the job's events until it has ended, and leaves KeyboardInterrupt to the caller."""

    @abstractmethod
    def stop(self) -> None:
        """Stops the job, which saves a checkpoint if it has begun."""

    def close(self) -> None:  # noqa: B027
        """Releases what `start` holds on this computer. Called however the job ends, also after `start` failed."""

    @abstractmethod
    def result(self) -> dict[str, Any]:
        """The result of the finished job, which it leaves in the run's folder. Raises CommandError where there is none:
        code 75 for a job that was stopped with a checkpoint."""


def out_setting(folder: str) -> str:
    """The job's `out` as `--set` takes it: a text of TOML, which knows JSON's escapes but those of surrogates."""
    return f"out={json.dumps(folder, ensure_ascii=False)}"


def run(runner: JobRunner, on_event: OnEvent) -> Outcome:
    """Runs a job to its end; Ctrl-C stops it with a checkpoint. Raises CommandError where it has no result."""
    runner.prepare(on_event)
    with runner.job.run.following():
        try:
            runner.start(on_event)
            _follow(runner, on_event)
        finally:
            runner.close()
    return Outcome(runner.job.run, runner.job.resumed, runner.result())


def _follow(runner: JobRunner, on_event: OnEvent) -> None:
    try:
        runner.follow(on_event)
    except KeyboardInterrupt:
        on_event({"event": "stopping"})
        runner.stop()
