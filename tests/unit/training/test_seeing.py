"""What a person can see of a run: live view, trace, MFU, stragglers, picture."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from trained import After, metrics

from infra.handover import Group
from training import loop
from training.build import data_of, model_of
from training.config.job import Job
from training.config.run import Trace
from training.loop import train
from training.metrics import flops, watch
from training.metrics.events import Lines, Report, Step
from training.metrics.profiler import ranges
from training.metrics.result import RESULT
from training.metrics.straggler import Pace, straggler


def lines(folder: Path) -> Path:
    rows = [
        {"step": 10 * n, "steps": 40, "loss": 1 / n, "lr": 0.1, "samples_per_second": 100.0, "seconds": 1.0 * n}
        for n in (1, 2, 3)
    ]
    rows.append({"step": 30, "accuracy": 0.75, "eval_loss": 0.5, "seconds": 3.0})
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "metrics.jsonl").write_text(text + '{"step": 40, "lo')  # a line that is being written
    return folder


def test_a_run_is_shown_from_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert watch.main(["watch", str(lines(tmp_path)), "--once"]) == 0

    shown = capsys.readouterr().out
    assert "step 30 of 40" in shown
    assert "0.3333" in shown
    assert "75.00%" in shown
    assert "1 s left" in shown


def test_a_folder_without_a_run_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert watch.main(["watch", str(tmp_path)]) == 1
    assert "holds no run" in capsys.readouterr().err


def test_a_run_that_goes_on_has_no_result_of_an_earlier_start(small: Callable[..., Job]):
    """A live view ends at the result."""
    stopped = train(small(), stop=After(3))
    there: list[bool] = []

    class Looks(Report):
        def step(self, step: Step) -> None:
            there.append((small().out / RESULT).exists())

    train(small(), report=Looks())

    assert not stopped.finished
    assert there
    assert not any(there)
    assert (small().out / RESULT).exists()


def test_a_curve_is_lowest_where_the_values_are():
    assert watch.curve([0.0, 0.5, 1.0]) == "▁▄█"
    assert watch.curve([2.0, 2.0]) == "▁▁"


def test_a_picture_is_drawn_of_a_run(tmp_path: Path):
    assert watch.main(["watch", str(lines(tmp_path)), "--picture", str(tmp_path / "run.png")]) == 0

    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")


def test_a_trace_holds_the_steps_that_were_asked_for(small: Callable[..., Job]):
    job = small("trace.from_step=3", "trace.steps=2", "steps=6")

    train(job)

    events = json.loads((job.out / "trace/rank-0.json").read_text())["traceEvents"]
    names = [event.get("name") for event in events]
    assert names.count("Optimizer.step#AdamW.step") == 2


@pytest.mark.parametrize(("nvtx", "gpu", "entered"), [(True, True, 1), (True, False, 0), (False, True, 0)])
def test_operations_are_ranges_for_nsight_where_they_are_asked_for_on_a_gpu(
    nvtx: bool, gpu: bool, entered: int, monkeypatch: pytest.MonkeyPatch
):
    calls: list[str] = []

    @contextmanager
    def emit_nvtx() -> Iterator[None]:
        calls.append("entered")
        yield
        calls.append("left")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    monkeypatch.setattr(torch.autograd.profiler, "emit_nvtx", emit_nvtx)
    with ranges(Trace(nvtx=nvtx)):
        assert calls == ["entered"] * entered

    assert calls == ["entered", "left"] * entered


def test_a_samples_operations_are_counted(small: Callable[..., Job]):
    images = "data={kind='synthetic', image_size=224, samples=4, held_out=1, classes=1000, global_batch=2}"
    job = small("model={kind='resnet50'}", images)
    found = data_of(job)

    counted = flops.of_sample(model_of(job, found), found, 1)

    assert counted == pytest.approx(24.6e9, rel=0.02)  # 4.1 G multiply-adds forward, twice that backward


def test_the_peak_is_the_nodes_own_fact(tmp_path: Path):
    node = tmp_path / "node.json"
    group = Group(name="trainer", count=1, gpu="H100", gpus_per_node=8, fabric="efa", gpu_tflops={"bf16": 989.4})
    node.write_text(json.dumps({"group": group.model_dump()}))

    assert flops.peak("bf16", torch.device("cuda"), node) == pytest.approx(989.4e12)
    assert flops.peak("bf16", torch.device("cpu"), node) is None
    assert flops.peak("bf16", torch.device("cuda"), tmp_path / "none.json") is None
    assert flops.mfu(1000, 1e10, 1e14, 1) == pytest.approx(0.1)


def test_a_straggler_is_measured_against_the_median():
    assert straggler([1.0, 1.1, 1.0, 3.0]) == pytest.approx(3.0 / 1.05)
    assert straggler([0.0, 0.0]) == 1.0


def test_a_report_times_the_passes_of_its_steps_and_none_that_were_thrown_away(
    small: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
):
    laps: list[int] = []

    class Counts(Pace):
        passes = 0

        def end(self) -> None:
            self.passes += 1

        def lap(self) -> float:
            laps.append(self.passes)
            self.passes = 0
            return 0.0

    monkeypatch.setattr(loop, "Pace", Counts)

    train(small("steps=4", "log_every=2"))

    assert laps[-2:] == [2, 2]


def test_stages_of_a_pipeline_are_not_compared(small: Callable[..., Job], ranks: Callable[..., list]):
    """They do different work, and only the last one computes a loss."""
    pipeline, ddp = small("steps=2", "parallel={kind='pipeline'}", out="pipeline"), small("steps=2", out="ddp")

    ranks(2, train, pipeline)
    ranks(2, train, ddp)

    assert [{"straggler", "loss"} & line.keys() for line in metrics(pipeline)] == [{"loss"}, {"loss"}, set()]
    assert [{"straggler"} & line.keys() for line in metrics(ddp)] == [{"straggler"}, {"straggler"}, set()]


def test_a_slow_rank_is_told_to_people(capsys: pytest.CaptureFixture[str]):
    step = Step(step=1, steps=2, loss=1.0, lr=0.1, samples_per_second=10, seconds=1, straggler=1.8, mfu=0.4)

    Lines().step(step)

    assert "MFU 40.0%  slowest rank 1.80×" in capsys.readouterr().out
