"""`bench timm`, `trainer`, `accelerate`, `accelerate-save` and `lightning-save`: ours against what people use, same
model, samples, batch, optimizer and precision, one process each, taking turns.

The peers live in an environment of their own (`make peers`); what they do stands in `theirs/`. Our side's time runs
from its first step to the report of its last, theirs from their first step to their last.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from PIL import Image

from training.bench.checkpoint import settings, started, waited
from training.bench.figure import BenchError, Figure, spread
from training.build import data_of, mode_of, model_of
from training.config.job import Job, load
from training.loop import train
from training.metrics.events import Report, Start, Step
from training.parallel import connect

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / "tools" / "peers" / ".venv" / "bin" / "python"
PROGRAMS = {"timm": "timm_loop", "accelerate": "accelerate_loop"}  # apart from the packages' own names
GOAL = 1.05
SAVE_GOAL = 16.7  # ours waits at most 6 % of theirs
CONSTANT = ["optimizer.schedule=constant", "optimizer.warmup_steps=0"]
FILES, FILE_SIZE = 1024, (500, 375)  # pixels: the size that ImageNet's files have on average


class Clock(Report):
    """From the first step to the report of the last."""

    began = ended = 0.0

    def start(self, start: Start) -> None:
        self.began = time.perf_counter()

    def step(self, step: Step) -> None:
        self.ended = time.perf_counter()


class Side(Protocol):
    def run_round(self) -> float: ...


class Peer:
    """The other side, ready for its turns; versions: of its packages."""

    def __init__(self, asks: IO[str], answers: IO[str], said: IO[str]) -> None:
        self._asks, self._answers, self._said = asks, answers, said
        self.versions: dict[str, str] = self._answer()

    def run_round(self) -> float:
        """Its seconds."""
        self._asks.write("round\n")
        self._asks.flush()
        return self._answer()

    def _answer(self) -> Any:
        line = self._answers.readline()
        if not line:
            self._said.seek(0)
            why = (self._said.read().strip().splitlines() or ["it said nothing"])[-1]
            raise BenchError(f"the peer ended: {why}")
        return json.loads(line)


@contextmanager
def peer(module: str, name: str, changes: list[str]) -> Iterator[Peer]:
    """The other side of a job, in its own environment. Raises BenchError."""
    if not PYTHON.is_file():
        raise BenchError("timm, Trainer, Accelerate and Lightning are not installed: run `make peers` once")
    command = [PYTHON, "-m", f"training.bench.baselines.{PROGRAMS.get(module, module)}", name, *changes]
    pipe = subprocess.PIPE
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=said, text=True)
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            yield Peer(process.stdin, process.stdout, said)
        finally:
            process.kill()
            process.wait()


def trainer(rounds: int) -> Figure:
    """Against Hugging Face's Trainer, with a small BERT as they build it, on made-up texts."""
    model = "model={kind='text-encoder', layers=2, heads=4, width=64, dropout=0.1}"
    text = "kind='synthetic-text', classes=2, length=128, vocabulary=8192"
    made_up = f"data={{{text}, samples=640, held_out=8, global_batch=32}}"
    return compared("trainer", "spam", ["steps=20", model, made_up, "optimizer.clip_norm=1.0", *CONSTANT], rounds)


def accelerate(rounds: int) -> Figure:
    """Against a loop with Accelerate, with the shipped MNIST-5k job."""
    plain = ["augment.shift=0", "augment.warp=0", "optimizer.kind=adamw", "eval.every_steps=100000"]
    return compared("accelerate", "mnist", ["steps=62", *plain, *CONSTANT], rounds)


def timm(rounds: int) -> Figure:
    """Against timm, ResNet-18 on JPEG files of ImageNet's usual size."""
    with tempfile.TemporaryDirectory() as folder:
        write_images(Path(folder))
        files = f"data={{kind='imagefolder', path='{folder}', image_size=112, global_batch=16, workers=1}}"
        changes = [f"steps={FILES // 16}", files, "augment.flip=true", *CONSTANT]
        return compared("timm", "resnet18-synthetic", [*changes, *fastest("resnet18-synthetic", changes)], rounds)


def fastest(name: str, changes: list[str]) -> list[str]:
    """What `compute = "auto"` chooses for a job, as settings: both sides are given the same."""
    with tempfile.TemporaryDirectory() as out, connect(60) as ranks:
        job = load(name, [*changes, f"out={out}", "precision.compute=auto"])
        data = data_of(job)
        mode = mode_of(job, ranks, model_of(job, data), data)
    return [f"precision.compute={mode.compute}", f"model.channels_last={str(mode.channels_last).lower()}"]


def compared(module: str, name: str, changes: list[str], rounds: int) -> Figure:
    """How many times as fast our loop does the job's steps."""
    with tempfile.TemporaryDirectory() as folder:
        changes = [*changes, "tensorboard=false", f"out={folder}/theirs"]
        job = load(name, changes)
        with peer(module, name, changes) as other:
            sides = rounds_of(
                rounds, lambda number: our_round(replace(job, out=Path(folder) / f"round-{number}")), other
            )
            return figure(module, job, *sides, other.versions)


def our_round(job: Job) -> float:
    clock = Clock()
    train(job, report=clock)
    return clock.ended - clock.began


def rounds_of(rounds: int, ours: Callable[[int], float], other: Side) -> tuple[list[float], list[float]]:
    """Seconds of each side's turns; a first turn of both warms up."""
    both = [(ours(number), other.run_round()) for number in range(rounds + 1)][1:]
    our_seconds, their_seconds = zip(*both, strict=True)
    return [*our_seconds], [*their_seconds]


def figure(module: str, job: Job, ours: list[float], theirs: list[float], versions: dict[str, str]) -> Figure:
    steps = job.steps or 1
    layout = ", channels last" if getattr(job.model, "channels_last", False) else ""
    return Figure(
        name=module,
        what=f"our loop against {module}, 1 process each",
        value=min(theirs) / min(ours),
        goal=GOAL,
        rows={"ours": spread(ours, steps), module: spread(theirs, steps)},
        settings={
            "job": f"{job.model.kind} on {job.data.kind}, batch {job.data.global_batch}",
            "mode": f"{job.precision.compute}{layout}",
            "turn": f"{steps} steps, our loop reports every {job.log_every}",
            "peer": versions_line(versions),
        },
    )


def accelerate_save(rounds: int) -> Figure:
    """Time that a save keeps the loop waiting, against Accelerate's `save_state`."""
    return saving("accelerate-save", "Accelerate's save_state", rounds)


def lightning_save(rounds: int) -> Figure:
    """The same against Lightning's `Fabric.save`."""
    return saving("lightning-save", "Lightning's Fabric.save", rounds)


def saving(name: str, theirs: str, rounds: int) -> Figure:
    with (
        tempfile.TemporaryDirectory() as folder,
        started(load(*settings(folder))) as run,
        peer(name.replace("-", "_"), *settings(folder)) as other,
    ):
        ours, others = rounds_of(rounds, lambda number: waited(run, number + 1), other)
        versions = other.versions
    return Figure(
        name=name,
        what=f"time that a save keeps the loop waiting, {theirs} over ours, 1 process each",
        value=min(others) / min(ours),
        goal=SAVE_GOAL,
        rows={"ours": spread(ours, 1), "theirs": spread(others, 1), "share": f"{min(ours) / min(others):.1%}"},
        settings={"state": "resnet50 with momentum", "peer": versions_line(versions)},
    )


def versions_line(versions: dict[str, str]) -> str:
    return ", ".join(f"{package} {version}" for package, version in versions.items())


def write_images(folder: Path) -> None:
    """JPEG files in two classes, as smooth as photographs are."""
    random = np.random.default_rng(1)
    for number in range(FILES + 16):
        part = "train" if number < FILES else "val"
        place = folder / part / f"class-{number % 2}" / f"{number}.jpg"
        place.parent.mkdir(parents=True, exist_ok=True)
        coarse = random.integers(0, 256, (FILE_SIZE[1] // 12, FILE_SIZE[0] // 12, 3), dtype=np.uint8)
        Image.fromarray(coarse).resize(FILE_SIZE, Image.Resampling.BICUBIC).save(place, quality=90)
