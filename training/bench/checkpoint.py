"""`bench checkpoint`: how long a save keeps the step loop waiting, ours against `torch.distributed.checkpoint.save`.

Both save ResNet-50 with momentum (205 MB) from the same live tensors, taking turns. Ours waits in `save`, and in `hold`
before the next step of the optimizer, with a real forward and backward between them; theirs for the whole call, into a
fresh folder. Before a turn nothing is under way.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from torch.distributed.checkpoint.state_dict_saver import save as dcp_save

from training.bench.figure import Figure, spread
from training.checkpoint.manifest import read_manifest
from training.config.job import Job, load
from training.loop import Run
from training.metrics.events import Report
from training.parallel import connect

GOAL = 16.7  # ours waits at most 6 % of theirs


def measure(rounds: int) -> Figure:
    """How many times as long `dcp.save` keeps the loop waiting."""
    ours: list[float] = []
    theirs: list[float] = []
    with tempfile.TemporaryDirectory() as folder, started(load(*settings(folder))) as run:
        for number in range(rounds + 1):
            ours.append(waited(run, number + 1))
            theirs.append(dcp_seconds(run, Path(folder) / "dcp"))
        newest = max((run.job.out / "checkpoints").glob("step-*"))
        size = sum(written.bytes for written in read_manifest(newest).files.values())
    ours, theirs = ours[1:], theirs[1:]  # the first turn warms both up
    return Figure(
        name="checkpoint",
        what="time that a save keeps the loop waiting, torch.distributed.checkpoint.save over ours, 1 process",
        value=min(theirs) / min(ours),
        goal=GOAL,
        rows={"ours": spread(ours, 1), "dcp.save": spread(theirs, 1), "share": f"{min(ours) / min(theirs):.1%}"},
        settings={"state": f"resnet50 with momentum, {size / 1e6:.0f} MB"},
    )


def settings(out: str) -> tuple[str, list[str]]:
    """A job and its changes: ResNet-50 on small made-up images, a large state behind a short step."""
    small = ["model.kind='resnet50'", "data.image_size=64", "data.samples=64", "data.global_batch=8", "steps=1"]
    return "resnet18-synthetic", [f"out={out}", "optimizer.warmup_steps=0", "tensorboard=false", *small]


@contextmanager
def started(job: Job) -> Iterator[Run]:
    """The job on this process after its first step, ready to save."""
    with connect(job.health.start_seconds) as ranks:
        run = Run(job, ranks, Report())
        try:
            step(run)
            run.checkpoints.prepare()
            yield run
        finally:
            run.close()


def step(run: Run) -> None:
    """One step without reports."""
    run.gradients(1, run.batches.at(0))
    run.checkpoints.hold()
    run.optimizer.step()
    run.optimizer.zero_grad(set_to_none=True)


def waited(run: Run, number: int) -> float:
    """Seconds in which the loop does nothing because of a save."""
    start = time.perf_counter()
    run.checkpoints.save(number)
    begun = time.perf_counter()
    run.gradients(1, run.batches.at(0))
    computed = time.perf_counter()
    run.checkpoints.hold()
    held = time.perf_counter()
    run.optimizer.zero_grad(set_to_none=True)
    run.checkpoints.finish()
    return begun - start + held - computed


def dcp_seconds(run: Run, folder: Path) -> float:
    state = {"model": run.model.state_dict(), "optimizer": run.optimizer.state_dict()}
    start = time.perf_counter()
    dcp_save(state, checkpoint_id=folder, no_dist=True)
    seconds = time.perf_counter() - start
    shutil.rmtree(folder)
    return seconds
