from __future__ import annotations

import gc
import json
from collections.abc import Callable

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from trained import After, CrashAt, CrashError, losses, metrics

from training.checkpoint.digest import of_folder
from training.checkpoint.snapshot import Writer
from training.config.job import Job, JobError
from training.loop import train
from training.metrics.events import Report, Step


def test_a_run_learns_and_leaves_its_files(small: Callable[..., Job]):
    job = small("steps=60", "optimizer.lr=0.01")

    result = train(job)

    assert (result.steps, result.finished, result.restarts, result.lost_steps) == (60, True, 0, 0)
    assert result.accuracy is not None
    assert result.accuracy > 0.5
    assert json.loads((job.out / "result.json").read_text()) == result.to_json()
    assert result.digest == of_folder(job.out / "checkpoints" / "step-00000060")
    assert [line["step"] for line in metrics(job)] == [*range(1, 61), 60]
    assert losses(job)[0] > 2 * losses(job)[-1]
    assert not (job.out / "PREEMPTED").exists()


def test_two_runs_of_one_job_are_equal_bit_for_bit(small: Callable[..., Job]):
    assert train(small(out="a")).digest == train(small(out="b")).digest
    assert train(small("seed=2", out="c")).digest != train(small(out="d")).digest


@pytest.mark.parametrize(
    "settings",
    [
        ("model.norm=batch",),
        ("optimizer.kind=sgd", "data.workers=2"),
        ("precision.compute=bf16", "augment.shift=1", "augment.warp=0.1"),
        ("precision.compute=fp16", "optimizer.clip_norm=0.5", "optimizer.ema=0.9"),
        ("parallel.shards=3", "model.norm=batch"),
    ],
)
def test_a_stopped_and_resumed_run_equals_one_that_went_through(small: Callable[..., Job], settings: tuple[str, ...]):
    straight = train(small(*settings, out="straight"))
    job = small(*settings, out="stopped")

    stopped = train(job, stop=After(5))
    resumed = train(job)

    assert (stopped.finished, stopped.steps, resumed.restarts, resumed.lost_steps) == (False, 5, 1, 0)
    assert resumed.digest == straight.digest
    assert resumed.accuracy == straight.accuracy


def test_a_stop_leaves_a_checkpoint_and_a_marker_that_the_next_start_takes_away(small: Callable[..., Job]):
    job = small()

    result = train(job, stop=After(4))

    assert json.loads((job.out / "PREEMPTED").read_text()) == {"step": 4}
    assert result.digest is None  # a large state is read longer than a stop may take
    assert json.loads((job.out / "result.json").read_text())["finished"] is False
    train(job)
    assert not (job.out / "PREEMPTED").exists()


def test_a_stop_before_the_first_step_is_heard(small: Callable[..., Job]):
    assert train(small(), stop=After(0)).steps == 0


@pytest.mark.parametrize(("questions", "step"), [(8, 6), (16, 12)])
def test_a_stop_during_evaluation_is_heard(small: Callable[..., Job], questions: int, step: int):
    """Asked once at the start, once a step, and four times in the evaluations after steps 6 and 12."""
    job = small("eval.every_steps=6", "eval.batch=10")

    result = train(job, stop=After(questions))

    assert (result.steps, result.finished) == (step, False)
    assert train(job).digest == train(small(out="straight")).digest


def test_after_a_crash_lost_steps_are_counted_and_no_step_is_in_the_metrics_twice(small: Callable[..., Job]):
    job = small("checkpoint.every_steps=4", "eval.every_steps=4")
    for at, saved in ((7, 4), (11, 8)):
        with pytest.raises(CrashError):
            train(job, report=CrashAt(at, saved))

    result = train(job)

    assert (result.restarts, result.lost_steps) == (2, 6)
    assert [line["step"] for line in metrics(job) if "loss" in line] == list(range(1, 13))
    assert [line["step"] for line in metrics(job) if "accuracy" in line] == [4, 8, 12]
    seconds = [line["seconds"] for line in metrics(job)]
    assert seconds == sorted(seconds)
    assert result.digest == train(small(out="straight")).digest


def test_a_crash_before_the_first_checkpoint_loses_every_step(small: Callable[..., Job]):
    job = small()
    with pytest.raises(CrashError):
        train(job, report=CrashAt(7))

    result = train(job)

    assert (result.restarts, result.lost_steps) == (1, 7)


def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(small: Callable[..., Job]):
    class Notes(Report):
        def __init__(self) -> None:
            self.texts: list[str] = []

        def note(self, text: str) -> None:
            self.texts.append(text)

    job, notes = small("checkpoint.every_steps=3"), Notes()
    train(job, stop=After(9))
    path = job.out / "checkpoints" / "step-00000009" / "rank-0.safetensors"
    path.write_bytes(path.read_bytes()[:100])

    result = train(job, report=notes)

    assert notes.texts == ["checkpoint step-00000009 skipped: rank-0.safetensors is not what was written"]
    assert (result.restarts, result.lost_steps) == (1, 3)
    assert result.digest == train(small(out="straight")).digest


def test_a_finished_run_started_again_does_nothing_twice(small: Callable[..., Job]):
    job = small()
    first, lines = train(job), metrics(job)

    again = train(job)

    assert (again.digest, again.accuracy, again.restarts, again.finished) == (first.digest, first.accuracy, 0, True)
    assert metrics(job) == lines


def test_a_finished_run_can_be_made_longer(small: Callable[..., Job]):
    train(small("steps=6", "optimizer.schedule=constant"))

    longer = train(small("optimizer.schedule=constant"))

    assert longer.digest == train(small("optimizer.schedule=constant", out="straight")).digest


@pytest.mark.parametrize(("shorter", "key"), [("steps=6", "steps"), ("epochs=1", "epochs")])
def test_a_run_cannot_end_before_its_newest_checkpoint(small: Callable[..., Job], shorter: str, key: str):
    """An epoch of this job has ten steps."""
    job = small()
    first = train(job)

    told = rf"{key}: .* is before the newest checkpoint, step 12, in .*run; set {key} higher, or another out"
    with pytest.raises(JobError, match=told):
        train(small(shorter))

    assert json.loads((job.out / "result.json").read_text()) == first.to_json()


def test_a_checkpoint_of_another_recipe_is_refused(small: Callable[..., Job]):
    train(small())

    with pytest.raises(JobError, match=r"optimizer\.lr: .* was trained with 0\.002, not 0\.1; set another out"):
        train(small("steps=20", "optimizer.lr=0.1"))


def test_what_decides_no_weights_may_change_on_the_way(small: Callable[..., Job]):
    """More broken files may be passed over than before: so the message about one too many advises."""
    folder = "data={kind='imagefolder', path='pictures', global_batch=8"

    assert small(folder + "}").recipe() == small(folder + ", unreadable=3}").recipe()


def test_accumulation_equals_no_accumulation(small: Callable[..., Job]):
    whole, pieces = small(out="whole"), small("data.micro_batch=5", out="pieces")
    train(whole)
    train(pieces)

    assert losses(pieces) == pytest.approx(losses(whole), abs=1e-5)


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("precision.compute=tf32", r"job small precision\.compute: tf32 needs a CUDA device"),
        ("data={kind='mnist5k', global_batch=5000}", r"job small data\.global_batch: is larger than the training set"),
        ("model={kind='resnet18'}", r"job small data\.image_size: is less than the 17 pixels that resnet18 needs"),
    ],
)
def test_what_does_not_fit_this_machine_or_data_is_one_line(small: Callable[..., Job], override: str, told: str):
    with pytest.raises(JobError, match=told):
        train(small(override))


def test_what_is_built_once_is_spared_the_garbage_collector_while_the_run_lasts(small: Callable[..., Job]):
    class Counts(Report):
        def __init__(self) -> None:
            self.spared: list[int] = []

        def step(self, step: Step) -> None:
            self.spared.append(gc.get_freeze_count())

    before, counts = gc.get_freeze_count(), Counts()

    train(small("steps=3"), report=counts)

    assert counts.spared[-1] > before
    assert gc.get_freeze_count() == 0


def test_saves_by_the_clock(small: Callable[..., Job], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Writer, "start", lambda writer, name, work: work())  # no step begins meanwhile
    job = small("checkpoint.every_seconds=0.000001", "checkpoint.keep=20")

    train(job)

    assert [int(folder.name[5:]) for folder in sorted((job.out / "checkpoints").iterdir())] == list(range(1, 13))


def test_tensorboard_shows_every_report_once_also_after_a_crash(small: Callable[..., Job]):
    job = small("tensorboard=true", "log_every=1", "checkpoint.every_steps=3")
    with pytest.raises(CrashError):
        train(job, report=CrashAt(5, saved=3))

    result = train(job)

    shown = EventAccumulator(str(job.out / "tensorboard")).Reload()
    plotted = shown.Scalars("train/loss")
    assert [event.step for event in plotted] == [*range(1, result.steps + 1)]
    assert [event.value for event in plotted] == pytest.approx(losses(job))
    assert {"train/lr", "train/samples_per_second", "eval/accuracy", "eval/loss"} <= {*shown.Tags()["scalars"]}
