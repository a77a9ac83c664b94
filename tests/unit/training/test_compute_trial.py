"""`compute = "auto"`: what is chosen, that it is kept, and that the trial leaves the model as it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from trained import After

from training import autotune
from training.autotune import PLAIN, Mode, Passes, candidates, chosen
from training.build import data_of, mode_of, model_of
from training.checkpoint.digest import digest
from training.config.job import Job, JobError
from training.data.transforms.draw import Draw
from training.loop import train
from training.parallel import connect

BF16 = Mode(compute="bf16", channels_last=True)
MODES = [Mode(compute=compute, channels_last=last) for compute in ("fp32", "bf16") for last in (False, True)]
CPU = torch.device("cpu")
PROMISED_SECONDS = 3.0


def test_the_fastest_mode_is_chosen_only_where_it_is_clearly_faster():
    assert chosen([PLAIN, BF16], [1.0, 0.5]) == BF16
    assert chosen([PLAIN, BF16], [1.0, 0.99]) == PLAIN
    assert chosen([PLAIN, BF16], [1.0, 2.0]) == PLAIN


def test_text_has_no_layout_to_choose():
    assert {mode.channels_last for mode in candidates(CPU, images=False, fp16=True)} == {False}


def test_the_trial_leaves_the_model_as_it_was(small: Callable[..., Job]):
    job = small("precision.compute=auto", "model.norm=batch")
    found = data_of(job)
    model = model_of(job, found)
    before = digest(model.state_dict())

    with connect(60) as ranks:
        mode_of(job, ranks, model, found)

    assert digest(model.state_dict()) == before


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[list[float], float]]:
    """Tries 64 samples on a machine where a pass takes `fixed` seconds and so many more a sample, the first pass in a
    mode twice that, and any mode but the plain one so many times as long; the plain one has memory for `room` samples.
    """

    def tried(a_sample: float, *, fixed: float = 0.0, others: float = 1.0, room: int = 64) -> tuple[list[float], float]:
        clock, known = 0.0, set()

        def timed(
            precision: object, model: object, inputs: torch.Tensor, targets: object, mode: Mode, device: object
        ) -> float:
            nonlocal clock
            if mode == PLAIN and len(inputs) > room:
                raise torch.OutOfMemoryError
            took = (fixed + len(inputs) * a_sample) * (1 if mode in known else 2) * (1 if mode == PLAIN else others)
            known.add(mode)
            clock += took
            return took

        monkeypatch.setattr(autotune, "timed", timed)
        monkeypatch.setattr(autotune, "time", SimpleNamespace(monotonic=lambda: clock))
        return autotune.trial(
            Passes(nn.Identity(), torch.zeros(64, autotune.ONE_ALONE), torch.zeros(64), CPU), MODES
        ), clock

    return tried


@pytest.mark.parametrize("others", [0.5, 2.0])
@pytest.mark.parametrize("a_sample", [0.0001, 0.02, 0.1, 0.15, 0.3, 0.6])
def test_the_trial_keeps_its_time(a_sample: float, others: float, machine: Callable[..., tuple[list[float], float]]):
    assert machine(a_sample, others=others)[1] <= PROMISED_SECONDS


@pytest.mark.parametrize("a_sample", [0.0001, 0.02, 0.1])
def test_every_mode_of_a_usual_model_is_tried(a_sample: float, machine: Callable[..., tuple[list[float], float]]):
    plain, *others = machine(a_sample, others=0.5)[0]

    assert others == pytest.approx([plain / 2] * len(others))


def test_a_stall_during_a_short_pass_does_not_rule_a_mode_out(monkeypatch: pytest.MonkeyPatch):
    """The fourth pass is the one that bf16 is looked at by; that of the look before warms it up."""
    passes = iter(range(1000))

    def timed(precision: object, model: object, inputs: object, targets: object, mode: Mode, device: object) -> float:
        return (0.008 if mode == PLAIN else 0.006) + (0.02 if next(passes) in range(3, 7) else 0)

    monkeypatch.setattr(autotune, "timed", timed)
    seconds = autotune.trial(Passes(nn.Identity(), torch.zeros(2, 1), torch.zeros(2), CPU), [PLAIN, BF16])

    assert chosen([PLAIN, BF16], seconds) == BF16


def test_a_model_too_slow_for_the_trial_stays_in_the_plain_mode(machine: Callable[..., tuple[list[float], float]]):
    seconds, took = machine(4.0, others=0.5)

    assert took == 8.0  # the first pass, of one sample
    assert chosen(MODES, seconds) == PLAIN


def test_modes_are_compared_on_what_the_plain_one_has_memory_for(machine: Callable[..., tuple[list[float], float]]):
    plain, *others = machine(0.0001, others=0.5, room=40)[0]

    assert 0 < plain <= 40 * 0.0001
    assert others == pytest.approx([plain / 2] * len(others))


def test_a_model_that_has_no_memory_for_a_sample_stays_in_the_plain_mode(
    machine: Callable[..., tuple[list[float], float]],
):
    assert chosen(MODES, machine(0.0001, room=0)[0]) == PLAIN


@pytest.mark.parametrize(("fixed", "a_sample"), [(0.01, 0.0001), (0.05, 0.001), (0.0, 0.0018)])
def test_a_batch_that_time_is_left_for_is_tried_as_a_whole(
    fixed: float, a_sample: float, machine: Callable[..., tuple[list[float], float]]
):
    assert machine(a_sample, fixed=fixed)[0][0] == pytest.approx(fixed + 64 * a_sample)


def test_the_trial_takes_small_images_that_batchnorm_refuses_one_by_one(small: Callable[..., Job]):
    job = small("model={kind='resnet18'}", "data.image_size=17", "precision.compute=auto")
    found = data_of(job)
    inputs, targets = found.training(Draw(1, 0), np.arange(2))

    assert min(autotune.trial(Passes(model_of(job, found), inputs, targets, CPU), MODES[:1])) > 0


def test_bf16_is_tried_on_a_cpu_only_where_it_has_instructions_for_it(monkeypatch: pytest.MonkeyPatch):
    def computes(**able: bool) -> set[str]:
        monkeypatch.setattr("torch.cpu.get_capabilities", lambda: able)
        return {mode.compute for mode in candidates(CPU, images=True, fp16=True)}

    assert computes(avx2=True, avx512_bf16=False, amx_bf16=False) == {"fp32"}
    assert computes(avx2=True, avx512_bf16=True, amx_bf16=False) == {"fp32", "bf16"}
    assert candidates(CPU, images=True, fp16=True)[:2] == [PLAIN, BF16], "a large model has time for few"


@pytest.mark.parametrize(
    ("ampere", "changes", "computes"),
    [
        (True, (), {"bf16", "tf32", "fp32"}),
        (False, (), {"fp16", "fp32"}),
        (False, ("parallel.compress=powersgd",), {"fp32"}),
    ],
)
def test_only_numbers_that_a_gpu_has_and_the_job_may_use_are_tried(
    small: Callable[..., Job],
    monkeypatch: pytest.MonkeyPatch,
    ampere: bool,
    changes: tuple[str, ...],
    computes: set[str],
):
    monkeypatch.setattr("torch.cuda.is_bf16_supported", lambda including_emulation: ampere)

    assert {
        mode.compute
        for mode in candidates(torch.device("cuda"), images=True, fp16=small(*changes).against_fp16() is None)
    } == computes


@pytest.mark.parametrize("left", ["", '{"compute": "bf1', "[]", '{"compute": "bf16"}'])
def test_a_choice_that_cannot_be_read_is_one_line(small: Callable[..., Job], left: str):
    job = small("precision.compute=auto")
    job.out.mkdir()
    (job.out / "compute.json").write_text(left)

    with pytest.raises(JobError, match=r"job small precision\.compute: .*/compute\.json cannot be read; remove it: .*"):
        train(job)


def test_a_choice_is_kept_by_the_run_and_told(small: Callable[..., Job], monkeypatch: pytest.MonkeyPatch):
    job = small("precision.compute=auto", "steps=4")
    monkeypatch.setattr(autotune, "chosen", lambda modes, seconds: BF16)
    stopped = train(job, stop=After(2))
    monkeypatch.setattr(autotune, "chosen", lambda modes, seconds: pytest.fail("tried again"))

    finished = train(job)

    assert (stopped.finished, finished.finished) == (False, True)
    assert (finished.compute, finished.channels_last) == ("bf16", True)
    told = json.loads((job.out / "result.json").read_text())
    assert told["compute"] == "bf16"
    assert 0 < told["trial_seconds"] == stopped.trial_seconds


def test_without_auto_the_jobs_own_mode_stands(small: Callable[..., Job]):
    result = train(small("steps=1", "precision.compute=bf16", "model.channels_last=false"))

    assert (result.compute, result.channels_last, result.trial_seconds) == ("bf16", False, None)
