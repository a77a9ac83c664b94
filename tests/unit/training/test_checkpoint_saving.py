"""What the step loop sees of a save: a copy, a wait before the next step of the optimizer, and what went wrong."""

from __future__ import annotations

import errno
import math
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.amp.grad_scaler import GradScaler

from training.checkpoint.interval import FIRST_SECONDS
from training.checkpoint.manager import PATIENCE_SECONDS, Checkpoints, unsound
from training.checkpoint.manifest import read
from training.checkpoint.snapshot import Snapshot, Writer
from training.checkpoint.state import State
from training.checkpoint.store import Store
from training.config.job import Job
from training.parallel import Parallel, Ranks, connect
from training.parallel.process_group import Vote


@contextmanager
def checkpoints(job: Job, model: nn.Module, told: list[str], *, sharded: bool = False) -> Iterator[Checkpoints]:
    with connect(60) as ranks:
        sgd = torch.optim.SGD(model.parameters(), 0.1)
        state = State(model, sgd, GradScaler("cpu", enabled=False))
        way = Parallel(model, ranks, 1)
        way.sharded = sharded

        def durable(step: int) -> None:
            told.append(f"durable {step}")

        yield Checkpoints(
            job.checkpoint, job.health, {}, ranks, state, way, out=job.out, durable=durable, note=told.append
        )


@pytest.mark.parametrize("sharded", [False, True])
def test_a_save_holds_the_buffers_of_its_step_though_the_next_forward_runs_beside_it(
    small: Callable[..., Job], monkeypatch: pytest.MonkeyPatch, sharded: bool
):
    model, forward_done = nn.BatchNorm1d(3), threading.Event()
    complete = Snapshot.complete

    def late(snapshot: Snapshot) -> dict[str, torch.Tensor]:
        assert forward_done.wait(10)
        return complete(snapshot)

    monkeypatch.setattr(Snapshot, "complete", late)
    job = small()
    with checkpoints(job, model, told := [], sharded=sharded) as saving:
        saving.save(1)
        model(torch.randn(8, 3) + 5)
        forward_done.set()
        saving.hold()
        saving.finish()

    saved = read(job.out / "checkpoints" / "step-00000001").tensors()
    assert told == ["durable 1"]
    assert saved["model.num_batches_tracked"].item() == 0
    assert saved["model.running_mean"].tolist() == [0, 0, 0]
    assert model.num_batches_tracked is not None
    assert model.num_batches_tracked.item() == 1


def test_a_save_that_fails_is_told_and_the_run_goes_on_but_does_not_end_so(small: Callable[..., Job]):
    job = small()
    with checkpoints(job, nn.Linear(2, 2), told := []) as saving:
        folder = job.out / "checkpoints"
        shutil.rmtree(folder)
        folder.write_text("a file where the folder was")
        saving.save(1)
        saving.save(2)
        assert told == [f"step 1 is not saved: Not a directory: {folder}/.writing-step-00000001-{saving._store._run}"
                        "; training goes on"]  # fmt: skip

        with pytest.raises(OSError, match="Not a directory"):
            saving.finish()


def test_a_save_counts_though_an_older_checkpoint_cannot_be_removed(
    small: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
):
    def refused(_: Store, folder: Path) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy", str(folder))

    monkeypatch.setattr(Store, "remove", refused)
    job = small("checkpoint.keep=2")
    with checkpoints(job, nn.Linear(2, 2), told := []) as saving:
        for step in (1, 2, 3):
            saving.save_last(step)
        saving.finish()

    busy = f"Device or resource busy: {job.out}/checkpoints/step-00000001"
    assert told[:2] == ["durable 1", "durable 2"]
    assert told[2:] == [f"checkpoints before step 3 are not all removed: {busy}", "durable 3"]


def test_of_older_checkpoints_only_one_that_is_held_stays(small: Callable[..., Job], monkeypatch: pytest.MonkeyPatch):
    remove = Store.remove

    def held(store: Store, folder: Path) -> None:
        if folder.name == "step-00000001":
            raise OSError(errno.EBUSY, "Device or resource busy", str(folder))
        remove(store, folder)

    monkeypatch.setattr(Store, "remove", held)
    job = small("checkpoint.keep=2")
    with checkpoints(job, nn.Linear(2, 2), []) as saving:
        for step in (1, 2, 3, 4):
            saving.save_last(step)
        saving.finish()

    left = sorted(folder.name for folder in (job.out / "checkpoints").glob("step-*"))
    assert left == ["step-00000001", "step-00000003", "step-00000004"]


def until(condition: Callable[[], bool]) -> None:
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.01)
    pytest.fail("it did not come")


def test_the_clock_waits_for_the_save_that_is_being_written(small: Callable[..., Job], monkeypatch: pytest.MonkeyPatch):
    disk, write = threading.Event(), Store.write
    monkeypatch.setattr(Store, "write", lambda *share: write(*share) if disk.wait(10) else None)
    with checkpoints(small("checkpoint.every_seconds=0.000001"), nn.Linear(2, 2), told := []) as saving:
        saving.save(1)
        assert not saving.overdue()
        saving.save(2)
        disk.set()
        until(saving.overdue)
        saving.finish()

    assert told == ["step 2 is not saved, nor any later one, while the save of step 1 is being written", "durable 1"]


def test_the_loop_waits_for_a_slow_save_once_and_says_so_once(
    small: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
):
    with checkpoints(small(), nn.Linear(2, 2), told := []) as saving:
        saving.save(1)
        saving.finish()
        waited: list[float] = []
        with monkeypatch.context() as patch:
            patch.setattr(Writer, "busy", lambda _, seconds=0.0: bool(waited.append(seconds)) or True)
            for step in (2, 3, 4):
                saving.save(step)
        saving.save(5)
        saving.finish()

    assert waited == [PATIENCE_SECONDS, 0.0, 0.0]
    assert told == [
        "durable 1",
        "step 2 is not saved, nor any later one, while the save of step 1 is being written",
        "durable 5",
    ]


def test_a_clock_that_another_rank_held_up_asks_again_at_once(
    small: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
):
    with checkpoints(small("checkpoint.every_seconds=0.2"), nn.Linear(2, 2), []) as saving:
        until(saving.overdue)
        with monkeypatch.context() as patch:
            patch.setattr(Ranks, "vote", lambda *_: Vote([1]))
            saving.save(1)
        assert saving.overdue()


def test_the_interval_follows_what_a_save_costs_once_it_is_made(small: Callable[..., Job]):
    with checkpoints(small("checkpoint.every_seconds=auto"), nn.Linear(2, 2), []) as saving:
        saving.prepare()
        saving.hold()
        assert not saving.overdue()
        assert saving._interval.seconds == FIRST_SECONDS

        saving.save(1)
        assert saving._interval.seconds == FIRST_SECONDS
        saving.hold()
        until(lambda: not saving._writer.busy())
        saving.overdue()

        assert saving._interval.seconds != FIRST_SECONDS


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("kind", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_one_value_that_is_no_number_is_found(value: float, kind: torch.dtype, layout: torch.memory_format):
    weights = torch.randn(3, 5, 4, 4).to(kind, memory_format=layout)
    assert not unsound(weights)

    weights[2, 4, 1, 3] = value

    assert unsound(weights)


def test_weights_that_are_no_numbers_are_not_saved(small: Callable[..., Job]):
    model, job = nn.Linear(2, 2), small()
    with checkpoints(job, model, []) as saving:
        with torch.no_grad():
            model.weight[0, 0] = float("nan")
        saving.save(1)
        with pytest.raises(OSError, match=r"model\.weight is not finite"):
            saving.finish()

    assert not list((job.out / "checkpoints").glob("step-*"))
