"""The local folders of runs, one a run, below the project's state folder."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ops import untrusted
from ops.project import Project
from ops.untrusted import Result, UnreadableError
from training import atomic


@dataclass(frozen=True)
class Run:
    """A run's local folder: `events.jsonl` while it runs, then `result.json`, `metrics.jsonl` and `run.png`."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def place(self) -> str:
        """The run's name on the nodes, set by `following`: other computers may count from 1 on the same storage."""
        return self._place.read_text()

    @property
    def result(self) -> Path:
        return self.folder / "result.json"

    @property
    def state(self) -> str:
        """running | finished | stopped: stopped has a checkpoint or nothing, and resumes when trained again."""
        if (result := self._result()) and result.finished:
            return "finished"
        return "running" if self._followed() else "stopped"

    def as_json(self) -> dict[str, Any]:
        result = self._result()
        progress = result.model_dump() if result else self._last_step()
        return {"name": self.name, "state": self.state, **{k: v for k, v in progress.items() if k != "name"}}

    @contextmanager
    def following(self) -> Iterator[None]:
        """Marks the run as followed by this process, which makes its state `running`; sets `place`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self._place.is_file():
            atomic.write(self._place, f"{self.name}-{secrets.token_hex(4)}".encode())
        mark = self.folder / "pid"
        atomic.write(mark, str(os.getpid()).encode())
        try:
            yield
        finally:
            mark.unlink()

    @property
    def _place(self) -> Path:
        return self.folder / "place"

    def _followed(self) -> bool:
        mark = self.folder / "pid"
        return mark.is_file() and Path(f"/proc/{mark.read_text()}").exists()

    def _result(self) -> Result | None:
        """None without one, and for an unreadable one: such a run is not finished."""
        try:
            return untrusted.parsed(Result, self.result.read_bytes())
        except (FileNotFoundError, UnreadableError):
            return None

    def _last_step(self) -> dict[str, Any]:
        events = self.folder / "events.jsonl"
        for line in reversed(events.read_bytes().splitlines() if events.is_file() else []):
            if (event := untrusted.event(line)) and event.pop("event") == "step":  # the last line may be incomplete
                return event
        return {}


def all_of(project: Project, stack: str) -> list[Run]:
    """Every run of a stack, oldest first."""
    folders = [f for f in project.runs(stack).glob("*") if f.is_dir()]
    return [Run(folder) for folder in sorted(folders, key=lambda f: f.stat().st_ctime)]


def newest(project: Project, stack: str) -> Run | None:
    return next(reversed(all_of(project, stack)), None)


def choose(project: Project, stack: str, job: str) -> tuple[Run, bool]:
    """The run that `train` starts for this job: its newest one when that is unfinished (it resumes), else a new one.

    Returns the run and whether it resumes. Names count up: mnist-1, mnist-2, …
    """
    of_job = [run for run in all_of(project, stack) if run.name.rpartition("-")[0] == job]
    numbers = [int(run.name.rpartition("-")[2]) for run in of_job]
    if of_job and of_job[-1].state == "stopped":
        return of_job[-1], True
    return Run(project.runs(stack) / f"{job}-{max(numbers, default=0) + 1}"), False
