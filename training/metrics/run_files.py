"""Rank 0's files of a run: metrics.jsonl, TensorBoard events and result.json."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from training import atomic, strict
from training.metrics.events import Evaluation, Report, Start, Step
from training.metrics.result import PREEMPTED, RESULT, Result

if TYPE_CHECKING:
    from training.metrics.tensorboard import Board


class Record(Report):
    """Writes each report into the run's folder and passes it on. done: the step that this start resumes from; what
    earlier starts wrote about later steps is dropped, since those are trained again."""

    def __init__(self, out: Path, onward: Report, done: int, *, tensorboard: bool) -> None:
        self._out, self._onward = out, onward
        out.mkdir(parents=True, exist_ok=True)
        for name in (PREEMPTED, RESULT):  # an earlier start's
            (out / name).unlink(missing_ok=True)
        path = out / "metrics.jsonl"
        lines = rows_until(path, done)
        atomic.write(path, "".join(f"{json.dumps(line)}\n" for line in lines).encode())
        self._evaluated = {line["step"] for line in lines if "accuracy" in line}
        self._metrics = path.open("ab", buffering=0)
        self._board = board(out / "tensorboard", done) if tensorboard else None

    def _write(self, values: dict[str, Any]) -> None:
        line = json.dumps(values).encode() + b"\n"
        try:
            if self._metrics.write(line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            remedy = "the run ends here; make room and start it again"
            raise OSError(error.errno, f"{error.strerror}: {remedy}", self._metrics.name) from error

    def _plot(self, step: int, group: str, **values: float) -> None:
        if self._board is not None:
            self._board.plot(step, {f"{group}/{name}": value for name, value in values.items()})

    def start(self, start: Start) -> None:
        self._onward.start(start)

    def step(self, step: Step) -> None:
        rate = round(step.samples_per_second, 1)
        figures = {"loss": step.loss, "lr": step.lr, "samples_per_second": rate}
        seen = {key: value for key in ("straggler", "mfu") if (value := getattr(step, key)) is not None}
        self._write({"step": step.step, "steps": step.steps, **figures, **seen, "seconds": step.seconds})
        self._plot(step.step, "train", **figures, **seen)
        self._onward.step(step)

    def evaluation(self, evaluation: Evaluation) -> None:
        figures = {"accuracy": evaluation.accuracy, "eval_loss": evaluation.loss}
        if evaluation.step not in self._evaluated:
            self._write({"step": evaluation.step, **figures, "seconds": evaluation.seconds})
        self._plot(evaluation.step, "eval", accuracy=evaluation.accuracy, loss=evaluation.loss)
        self._onward.evaluation(evaluation)

    def checkpoint(self, step: int) -> None:
        self._onward.checkpoint(step)

    def note(self, text: str) -> None:
        self._onward.note(text)

    def result(self, result: Result) -> None:
        result.write(self._out)
        self._onward.result(result)

    def close(self) -> None:
        self._metrics.close()
        if self._board is not None:
            self._board.close()


def rows_until(path: Path, done: int) -> list[dict[str, Any]]:
    """The records of steps up to `done`; a line that a kill cut short is dropped."""
    return [record for record in strict.rows(path) if record["step"] <= done]


def board(folder: Path, done: int) -> Board:
    """TensorBoard's events, imported only when they are written: the import takes a quarter of a second."""
    from training.metrics.tensorboard import Board

    return Board(folder, done)
