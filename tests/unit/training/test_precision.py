"""What a step computes with: which numbers, which kernels, and what a device cannot."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from trained import After

from training.build import data_of, model_of
from training.checkpoint.digest import digest
from training.config.job import Job, JobError
from training.data.transforms.draw import Draw
from training.loop import train
from training.models.resnet import LEAST_IMAGE_SIZE
from training.optim.loss import cross_entropy
from training.precision import Precision

TEXT = "data={kind='synthetic-text', samples=40, held_out=4, length=64, vocabulary=50, global_batch=8"
NETS = {
    "cnn": ("model={kind='cnn', norm='batch'}",),
    "resnet18": ("model={kind='resnet18'}", "data.image_size=32", "data.global_batch=4"),
    "text-encoder": ("model={kind='text-encoder'}", f"{TEXT}, classes=3}}"),
    "gpt": ("model={kind='gpt'}", f"{TEXT}}}"),
}


@pytest.mark.parametrize(("compute", "matrices"), [("tf32", "tf32"), ("bf16", "ieee"), ("fp32", "ieee")])
def test_matrices_are_multiplied_in_tf32_only_where_it_is_asked_for(
    compute: str, matrices: str, small: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *, including_emulation: True)
    monkeypatch.setattr(torch.backends, "cuda", SimpleNamespace(matmul=SimpleNamespace(fp32_precision="none")))
    monkeypatch.setattr(torch.backends, "cudnn", SimpleNamespace(fp32_precision="none"))

    Precision(compute, torch.device("cuda"), deterministic=False)

    assert {torch.backends.cuda.matmul.fp32_precision, torch.backends.cudnn.fp32_precision} == {matrices}  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("clip_norm", [0.0, 1.0])
def test_a_step_whose_fp16_gradients_overflow_is_left_out_and_the_scale_halved(
    clip_norm: float, small: Callable[..., Job]
):
    precision, weight = Precision("fp16", torch.device("cpu"), deterministic=False), nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=0.1)

    precision.backward(weight.sum() * 1e38)
    assert weight.grad is not None
    assert not weight.grad.isfinite().all()
    precision.step(optimizer, clip_norm)
    assert (weight.tolist(), precision.scaler.get_scale()) == ([1.0, 1.0], 2.0**15)

    optimizer.zero_grad()
    precision.backward(weight.sum())
    precision.step(optimizer, clip_norm)

    assert weight.tolist() == pytest.approx([0.9, 0.9] if not clip_norm else [1 - 0.1 / 2**0.5] * 2)


@pytest.mark.parametrize("compute", ["bf16", "tf32"])
def test_what_a_gpu_only_emulates_is_refused(compute: str, small: Callable[..., Job], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *, including_emulation: including_emulation)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "Tesla T4")
    told = rf"precision\.compute: {compute} needs a GPU of .* 8\.0 \(A100\) or later, which Tesla T4 is not; use fp16"

    with pytest.raises(JobError, match=told):
        Precision(compute, torch.device("cuda"), deterministic=False)


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process in which nobody has asked for exact ones yet, and that goes on without."""
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    yield
    torch.use_deterministic_algorithms(False)
    os.environ.pop("CUBLAS_WORKSPACE_CONFIG", None)  # monkeypatch gives back only one that was there


@pytest.mark.usefixtures("kernels")
def test_exact_kernels_are_used_only_where_they_are_asked_for(small: Callable[..., Job]):
    for asked in (True, False):
        Precision("fp32", torch.device("cpu"), deterministic=asked)

        assert torch.are_deterministic_algorithms_enabled() == asked
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("net", NETS)
def test_by_exact_kernels_every_model_resumes_to_the_same_bits(net: str, small: Callable[..., Job]):
    """On the GPU, where there is one."""
    settings = (*NETS[net], "steps=2", "precision.compute=bf16", "precision.deterministic=true")
    straight, job = train(small(*settings, out="straight")), small(*settings, out="stopped")

    train(job, stop=After(1))

    assert train(job).digest == straight.digest


def test_the_smallest_images_of_a_resnet_have_gradients_in_bf16(small: Callable[..., Job]):
    """Of smaller ones parts of a gradient were what the memory held before: it is filled with other bits each time."""
    job = small("model={kind='resnet18'}", f"data.image_size={LEAST_IMAGE_SIZE}")
    found = data_of(job)
    model, (inputs, targets) = model_of(job, found), found.training(Draw(1, 0), np.arange(4))
    seen: set[str] = set()
    for turn in range(4):
        del [torch.full((2**size,), 10.0**turn) for size in range(10, 22) for _ in range(4)][:]
        model.zero_grad(set_to_none=True)
        with Precision("bf16", torch.device("cpu"), deterministic=False).autocast():
            loss = cross_entropy(model(inputs).float(), targets)
        loss.backward()
        seen.add(digest({name: p.grad for name, p in model.named_parameters() if p.grad is not None}))

    assert len(seen) == 1
