"""What the tests of training share: stops, crashes, and what a run wrote."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from training.config.job import Job
from training.data import pack
from training.metrics.events import Report, Step


class After:
    """A stop that is requested from the n-th question on."""

    def __init__(self, questions: int) -> None:
        self.left = questions

    def requested(self) -> bool:
        self.left -= 1
        return self.left < 0


class CrashError(Exception):
    pass


class CrashAt(Report):
    """Dies like a process does: in the middle of the loop, without a save, once the save before it is durable."""

    def __init__(self, at: int, saved: int = 0) -> None:
        self.at = at
        self.saved = saved
        self.durable = threading.Event()

    def checkpoint(self, step: int) -> None:
        if step == self.saved:
            self.durable.set()

    def step(self, step: Step) -> None:
        if step.step == self.at:
            if self.saved and not self.durable.wait(timeout=60):
                raise AssertionError(f"the save of step {self.saved} never became durable")
            raise CrashError


def pack_job(job: Job, folder: Path) -> None:
    """Packs the data set of a job."""
    pack.pack(job.data, job.seed, folder)


def metrics(job: Job) -> list[dict]:
    return [json.loads(line) for line in (job.out / "metrics.jsonl").read_text().splitlines()]


def losses(job: Job) -> list[float]:
    return [line["loss"] for line in metrics(job) if "loss" in line]
