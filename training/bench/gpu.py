"""`bench gpu-resnet50`, `gpu-timm` and `gpu-gpt`: speed on one GPU, images and tokens made up and on the device.

ResNet-50 at 224 pixels in batches of 256 as bf16 and channels last, against what pytorch/examples' imagenet/main.py
sets (TF32 convolutions, plain layout, top-1 and top-5 and the loss read at every step) and against timm with the same
bf16 and layout; GPT of 124 million parameters by its MFU.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

from training.bench.figure import BenchError, Figure, spread
from training.bench.peers import CONSTANT, figure, our_round, peer, rounds_of
from training.build import data_of, model_of
from training.config.job import Job, load
from training.data.text import TextSet
from training.metrics import flops

RESNET50 = [
    "steps=40",
    "model.kind='resnet50'",
    "data={kind='synthetic', samples=1024, held_out=8, classes=1000, image_size=224, global_batch=256}",
    "precision.compute=bf16",
    "tensorboard=false",
    *CONSTANT,
]
GPT = [
    "steps=40",
    "model={kind='gpt', layers=12, heads=12, width=768}",
    "data={kind='synthetic-text', samples=256, held_out=1, length=1024, vocabulary=50304, global_batch=32}",
    "optimizer={kind='adamw', lr=0.0006}",
    "precision.compute=bf16",
    "tensorboard=false",
]
EXAMPLES_GOAL, TIMM_GOAL, MFU_GOAL = 2.5, 1.05, 0.45


def resnet50(rounds: int) -> Figure:
    """Images a second, against the settings of pytorch/examples."""
    need_gpu("gpu-resnet50")
    with tempfile.TemporaryDirectory() as folder:
        job = load("resnet18-synthetic", [*RESNET50, f"out={folder}/examples"])
        result = figure(
            "examples", job, *rounds_of(rounds, fresh(job, folder), Examples(job)), {"torch": torch.__version__}
        )
    return replace(result, name="gpu-resnet50", goal=EXAMPLES_GOAL)


def timm(rounds: int) -> Figure:
    """Images a second, against timm."""
    need_gpu("gpu-timm")
    with tempfile.TemporaryDirectory() as folder:
        changes = [*RESNET50, f"out={folder}/timm"]
        job = load("resnet18-synthetic", changes)
        with peer("timm", "resnet18-synthetic", changes) as other:
            result = figure("timm", job, *rounds_of(rounds, fresh(job, folder), other), other.versions)
    return replace(result, name="gpu-timm", goal=TIMM_GOAL)


def gpt(rounds: int) -> Figure:
    """MFU of GPT-124M: its arithmetic over the GPU's peak."""
    need_gpu("gpu-gpt")
    peak = flops.peak("bf16", torch.device("cuda"))
    if peak is None:
        raise BenchError(f"gpu-gpt needs the GPU's peak: {flops.NODE} has none; gpu_node.yml writes it")
    with tempfile.TemporaryDirectory() as folder:
        job = load("gpt-moby-dick", [*GPT, f"out={folder}"])
        seconds = [fresh(job, folder)(number) for number in range(rounds + 1)][1:]
        text = data_of(job).to(torch.device("cuda"))
        assert isinstance(text, TextSet)
        model = model_of(job, text).to("cuda")
        per_sample = flops.of_sample(model, text, job.seed)
    rate = (job.steps or 1) * job.data.global_batch / min(seconds)
    millions = sum(p.numel() for p in model.parameters()) / 1e6
    gpu = f"{torch.cuda.get_device_name()}, peak {peak / 1e12:g} TFLOP/s"
    return Figure(
        name="gpu-gpt",
        what="MFU of a GPT in bf16, 1 GPU",
        value=flops.mfu(rate, per_sample, peak, 1),
        goal=MFU_GOAL,
        rows={"ours": spread(seconds, job.steps or 1), "tokens": f"{rate * text.length:,.0f} a second"},
        settings={"gpu": gpu, "model": f"{millions:.0f} M parameters"},
    )


def need_gpu(name: str) -> None:
    if not torch.cuda.is_available():
        raise BenchError(f"{name} needs a CUDA GPU, and torch finds none here")


def fresh(job: Job, folder: str) -> Callable[[int], float]:
    """Our turn, each in a folder of its own: nothing is resumed."""
    return lambda number: our_round(replace(job, out=Path(folder) / f"round-{number}"))


class Examples:
    """The loop of pytorch/examples' imagenet/main.py on one resident batch, with torch's defaults of precision."""

    def __init__(self, job: Job) -> None:
        data = data_of(job).to(torch.device("cuda"))
        self.model = model_of(job, data).to("cuda")
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
        self.criterion, self.steps = nn.CrossEntropyLoss(), job.steps or 1
        self.images = torch.randn(job.data.global_batch, 3, 224, 224, device="cuda")
        self.labels = torch.randint(1000, (job.data.global_batch,), device="cuda")

    def run_round(self) -> float:
        """Seconds of the steps."""
        torch.backends.cudnn.fp32_precision = "tf32"  # pyright: ignore[reportAttributeAccessIssue]
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(self.steps):
            outputs = self.model(self.images)
            loss = self.criterion(outputs, self.labels)
            best = outputs.topk(5).indices == self.labels[:, None]
            self.seen = loss.item(), best[:, 0].float().mean().item(), best.any(1).float().mean().item()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        torch.cuda.synchronize()
        return time.perf_counter() - start
