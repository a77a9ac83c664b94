"""The benchmarks' own arithmetic and words; what they measure is no test's business."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from training import bench
from training.autotune import Mode
from training.bench import article, naive, peers
from training.bench.figure import BenchError, Figure
from training.bench.loop import STEPS, Rounds, job
from training.build import data_of, model_of
from training.config.job import Job, load
from training.config.model import Cnn
from training.loop import train


def figure(value: float) -> Figure:
    return Figure(name="loop", what="ours against theirs", value=value, goal=0.97, rows={"ours": "1 ms"}, settings={})


def test_a_figure_is_reached_at_its_goal() -> None:
    assert figure(0.97).verdict == "reached"
    assert figure(0.9699).verdict == "missed"


def test_a_missed_figure_is_told_and_is_no_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "measured", lambda name, turns: figure(0.5))

    assert bench.main(["bench", "loop"]) == 0
    text = capsys.readouterr().out
    assert bench.main(["bench", "loop", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)

    assert "result                0.500, goal 0.97 or more: missed" in text
    assert torch.__version__ in text
    assert told["figures"][0]["verdict"] == "missed"
    assert told["machine"]["torch"] == torch.__version__


def test_one_that_cannot_be_run_says_why(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(name: str, turns: int) -> Figure:
        raise BenchError("a rank ended with exit code 1")

    monkeypatch.setattr(bench, "measured", fail)

    assert bench.main(["bench", "loop"]) == 1
    assert capsys.readouterr().err == "bench: a rank ended with exit code 1\n"


def test_what_is_compared_with_must_be_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(peers, "PYTHON", tmp_path / "python")

    assert bench.main(["bench", "trainer"]) == 1
    assert capsys.readouterr().err.endswith("are not installed: run `make peers` once\n")


def test_a_peer_that_ends_is_told_with_its_last_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho \'{"timm": "1"}\'; read line; echo 0.5; read line; echo no memory >&2\n')
    python.chmod(0o755)
    monkeypatch.setattr(peers, "PYTHON", python)

    with peers.peer("timm", "smoke", []) as other:
        assert (other.versions, other.run_round()) == ({"timm": "1"}, 0.5)
        with pytest.raises(BenchError, match="the peer ended: no memory"):
            other.run_round()


def test_both_sides_are_given_the_mode_that_auto_chose(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "mode_of", lambda *_: Mode(compute="bf16", channels_last=False))

    given = load("smoke", peers.fastest("smoke", []))

    assert isinstance(given.model, Cnn)
    assert (given.precision.compute, given.model.channels_last) == ("bf16", False)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("name", ["gpu-resnet50", "gpu-timm", "gpu-gpt"])
def test_a_benchmark_of_a_gpu_says_where_there_is_none(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["bench", name]) == 1
    assert capsys.readouterr().err == f"bench: {name} needs a CUDA GPU, and torch finds none here\n"


@pytest.mark.parametrize("wrong", [["bench", "speed"], ["bench"], ["bench", "loop", "--rounds", "4"]])
def test_a_wrong_name_or_too_few_rounds_is_refused(wrong: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        bench.main(wrong)


def test_both_loops_do_the_same_number_of_steps_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []

    class Counted:
        def __init__(self, made: object) -> None: ...

        def run(self, steps: int) -> None:
            done.append(steps)

    monkeypatch.setattr("training.bench.bare.Bare", Counted)
    made = job("out", 5)
    rounds = Rounds(made, 5)

    assert made.steps is not None
    assert not any(rounds.requested() for _ in range(made.steps))
    assert done == [STEPS] * 6  # the first warms up
    assert {side: len(seconds) for side, seconds in rounds.seconds.items()} == {"ours": 5, "bare": 5}


def test_the_article_learns(tmp_path: Path) -> None:
    made = job("out", 5)
    found = data_of(made)
    images, labels = (t.numpy() for t in found.train.at(np.arange(4000), None))
    digits = article.Pictures(images[:, 0], labels, mean=33.3, std=78.6, shift=1, warp=0.1, flip=True)
    np.random.seed(0)
    torch.manual_seed(0)
    model = model_of(made, found)
    file = tmp_path / "article.pt"

    loss = article.train(model, digits, batch=32, steps=30, lr=made.optimizer.lr, save_every=10, file=file)

    assert loss < 2.0  # 2.3 is a guess among ten classes
    assert torch.load(file)["step"] == 30


def test_a_turn_against_the_article_ends_with_its_last_steps_save_and_evaluates_nothing(small: Callable[..., Job]):
    clock = naive.Clock()

    result = train(small("steps=4"), report=clock, stop=naive.AtEnd(4))

    assert (result.steps, result.accuracy) == (4, None)
    assert clock.ended > clock.began > 0
