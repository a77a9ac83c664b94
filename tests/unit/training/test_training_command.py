from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from training.__main__ import main
from training.config.job import Job
from training.elastic import stop


@pytest.fixture
def job_file(small: Callable[..., Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    small()
    monkeypatch.chdir(tmp_path)
    return str(tmp_path / "small.toml")


def test_without_arguments_help_is_printed(capsys: pytest.CaptureFixture[str]):
    assert main([]) == 0
    assert "launch" in capsys.readouterr().out


def test_a_run_ends_with_0_and_tells_its_steps(job_file: str, capsys: pytest.CaptureFixture[str]):
    assert main(["run", job_file]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("small: 12 steps, ")
    assert any(line.startswith("step 12/12  loss ") for line in lines)
    assert lines[-1].startswith("accuracy ")


def test_events_are_one_object_a_line(job_file: str, capsys: pytest.CaptureFixture[str]):
    assert main(["run", job_file, "--events", "--set", "checkpoint.every_steps=6"]) == 0

    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    names = [event["event"] for event in events]
    assert (names[0], names[-1], names.count("step"), names.count("eval")) == ("start", "result", 12, 1)
    assert [event["step"] for event in events if event["event"] == "checkpoint"] == [6, 12]
    assert {"steps", "world_size", "parameters"} <= events[0].keys()
    assert {"step", "steps", "loss", "lr", "samples_per_second"} <= events[1].keys()
    assert events[-1]["digest"] == json.loads(Path("runs/small/result.json").read_text())["digest"]


def test_a_wrong_job_ends_with_2_and_no_traceback(job_file: str, capsys: pytest.CaptureFixture[str]):
    assert main(["run", job_file, "--set", "optimizer.lr=-1"]) == 2
    assert capsys.readouterr().err == "--set optimizer.lr: must be greater than 0, is -1\n"


def test_the_rank_that_fails_says_why_whichever_it_is(
    job_file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("RANK", "3")

    assert main(["run", job_file, "--set", "data={kind='packed', path='nowhere', global_batch=8}"]) == 1
    assert capsys.readouterr().err.startswith("nowhere is no packed data set")


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("data.micro_batch=0", "data.micro_batch: {}; it is 0, a rank's whole share at once: set a part of it, or "),
        ("data.micro_batch=4", "data.micro_batch: {}; set fewer than 4, or parallel.kind = fsdp"),
        ("parallel={kind='pipeline'}", "parallel.micro_batches: {}; set more than 4"),
    ],
)
def test_a_gpu_whose_memory_is_full_ends_with_1_and_what_to_change(
    setting: str, told: str, job_file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def full(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError(
            "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 80"
        )

    monkeypatch.setattr("training.loop.train", full)

    assert main(["run", job_file, "--set", setting]) == 1
    assert told.format("CUDA out of memory. Tried to allocate 20.00 GiB") in capsys.readouterr().err


def test_a_stopped_run_ends_with_75(job_file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(stop.Stop, "requested", lambda self: True)

    assert main(["run", job_file]) == 75
    assert "the checkpoint is saved" in capsys.readouterr().out


def test_pack_ends_with_0_once_and_then_says_that_it_is_there(job_file: str, capsys: pytest.CaptureFixture[str]):
    assert main(["pack", job_file, "packed"]) == 0
    assert capsys.readouterr().out == "packed: 240 samples to train on, 40 held out\n"
    assert main(["pack", job_file, "packed"]) == 1
    assert main(["pack", job_file, "other", "--set", "data.samples=0"]) == 2

    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("packed is there already; ")
    assert said[1].startswith("--set data.samples: must be 1 or more")


def test_a_folder_that_cannot_be_written_ends_with_1_and_one_line(job_file: str, capsys: pytest.CaptureFixture[str]):
    Path("taken").write_text("")

    assert main(["run", job_file, "--set", "out=taken"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_digest_prints_what_the_result_says(job_file: str, capsys: pytest.CaptureFixture[str]):
    main(["run", job_file])
    capsys.readouterr()

    assert main(["digest", "runs/small/checkpoints/step-00000012"]) == 0
    assert capsys.readouterr().out.strip() == json.loads(Path("runs/small/result.json").read_text())["digest"]


def test_digest_of_a_damaged_checkpoint_ends_with_1(job_file: str, capsys: pytest.CaptureFixture[str]):
    main(["run", job_file])
    Path("runs/small/checkpoints/step-00000012/rank-0.safetensors").write_bytes(b"")

    assert main(["digest", "runs/small/checkpoints/step-00000012"]) == 1
    assert "rank-0.safetensors is not what was written" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["run"], ["digest"]])
def test_a_checkpoint_that_cannot_be_read_ends_with_1_and_one_line(
    command: list[str], job_file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    main(["run", job_file])
    capsys.readouterr()
    folder, opened = Path("runs/small/checkpoints/step-00000012"), os.open

    def stale(path: Any, *args: Any, **options: Any) -> int:
        if Path(path).name == "rank-0.safetensors":
            raise OSError(errno.ESTALE, "Stale file handle")
        return opened(path, *args, **options)

    monkeypatch.setattr(os, "open", stale)

    assert main([*command, job_file if command == ["run"] else str(folder)]) == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert "Stale file handle: the checkpoint may be good: start again when it can be read, or move it away: '" in said
    assert said.endswith("step-00000012/rank-0.safetensors'")
    assert folder.is_dir()
