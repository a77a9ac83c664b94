"""Reports of a run while it runs: lines for people, or one JSON object a line for programs."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from training.metrics.result import Result

STRAGGLING = 1.3  # lines for people show a straggler above this; metrics.jsonl has all


@dataclass(frozen=True, kw_only=True)
class Step:
    """A reported step: the mean loss of its global batch, and samples a second since the report before.

    straggler: the slowest rank's forward time over the median rank's, None on one rank and in a pipeline,
    whose stages do different work. mfu: share of the GPUs' peak, None where that is not known.
    """

    step: int
    steps: int
    loss: float
    lr: float
    samples_per_second: float
    seconds: float
    straggler: float | None = None
    mfu: float | None = None


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The held-out samples after a step: the share that is right, and the mean loss."""

    step: int
    accuracy: float
    loss: float
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Start:
    """A run begins, or goes on from `done` steps."""

    name: str
    done: int
    steps: int
    world_size: int
    parameters: int
    device: str


class Report:
    """Reports nothing; every method may be overridden."""

    def start(self, start: Start) -> None: ...
    def step(self, step: Step) -> None: ...
    def evaluation(self, evaluation: Evaluation) -> None: ...
    def checkpoint(self, step: int) -> None: ...
    def note(self, text: str) -> None: ...
    def result(self, result: Result) -> None: ...
    def close(self) -> None: ...


class Lines(Report):
    """Plain lines for people."""

    def start(self, start: Start) -> None:
        on = f"{start.world_size} rank{'s' if start.world_size > 1 else ''} on {start.device}"
        since = f", from step {start.done}" if start.done else ""
        say(f"{start.name}: {start.steps} steps{since}, {start.parameters:,} parameters, {on}")

    def step(self, step: Step) -> None:
        rate = step.samples_per_second
        mfu = "" if step.mfu is None else f"  MFU {step.mfu:.1%}"
        slow = f"  slowest rank {step.straggler:.2f}×" if step.straggler and step.straggler > STRAGGLING else ""
        say(f"step {step.step}/{step.steps}  loss {step.loss:.4f}  lr {step.lr:.4g}  {rate:,.0f} samples/s{mfu}{slow}")

    def evaluation(self, evaluation: Evaluation) -> None:
        say(f"step {evaluation.step}  accuracy {evaluation.accuracy:.2%}  held-out loss {evaluation.loss:.4f}")

    def checkpoint(self, step: int) -> None:
        say(f"checkpoint step {step}")

    def note(self, text: str) -> None:
        say(text)

    def result(self, result: Result) -> None:
        if not result.finished:
            say(f"stopped at step {result.steps}; the checkpoint is saved: run the same command to resume")
            return
        accuracy = "" if result.accuracy is None else f"accuracy {result.accuracy:.2%}  "
        say(f"{accuracy}{result.steps} steps in {result.seconds:.1f} s  {result.samples_per_second:,.0f} samples/s")


class Events(Report):
    """One JSON object a line."""

    def start(self, start: Start) -> None:
        event("start", asdict(start))

    def step(self, step: Step) -> None:
        event("step", asdict(step))

    def evaluation(self, evaluation: Evaluation) -> None:
        event("eval", asdict(evaluation))

    def checkpoint(self, step: int) -> None:
        event("checkpoint", {"step": step})

    def note(self, text: str) -> None:
        event("note", {"text": text})

    def result(self, result: Result) -> None:
        event("result", result.to_json())


def event(name: str, values: dict[str, Any]) -> None:
    say(json.dumps({"event": name, **values}))


def say(line: str) -> None:
    """One write a line: the checkpoint thread reports too."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
