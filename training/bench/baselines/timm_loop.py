"""timm's loader, model, optimizer and schedule in the loop that its train.py makes of them.

That script is not in timm's package; what a step of it does is done here in its order: batch, forward, loss, backward,
optimizer, the loss read for the running mean, the schedule's update.
"""
# pyright: reportMissingImports=false

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable

import timm
import torch
from timm.data.dataset_factory import create_dataset
from timm.data.loader import create_loader
from timm.optim import create_optimizer_v2
from timm.scheduler import create_scheduler_v2
from timm.utils import AverageMeter
from torch import Tensor, nn

from training.bench.baselines import serve
from training.config.data import ImageFolder, Synthetic
from training.config.job import Job
from training.config.model import ResNet
from training.config.optimizer import Sgd

WORKERS = 4  # train.py's own default


def runner_of(job: Job) -> Callable[[], float]:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    assert isinstance(job.data, ImageFolder | Synthetic)
    assert isinstance(job.optimizer, Sgd)
    assert job.steps is not None
    batches, classes, steps = batches_of(job.data, job.steps, device)
    assert isinstance(job.model, ResNet)
    layout = torch.channels_last if job.model.channels_last else torch.contiguous_format
    model = timm.create_model(job.model.kind, num_classes=classes)
    model = model.to(device=device, memory_format=layout)
    optimizer = create_optimizer_v2(
        model, opt="sgd", lr=job.optimizer.lr, weight_decay=job.optimizer.weight_decay, momentum=job.optimizer.momentum
    )
    rates, _ = create_scheduler_v2(
        optimizer, sched="cosine", num_epochs=100, step_on_epochs=False, updates_per_epoch=steps
    )
    criterion = nn.CrossEntropyLoss().to(device)
    half = torch.autocast(device.type, torch.bfloat16, enabled=job.precision.compute == "bf16")
    updates = 0

    def run_round() -> float:
        nonlocal updates
        losses = AverageMeter()
        model.train()
        start = time.perf_counter()
        for images, targets in batches:
            inputs = images.contiguous(memory_format=layout)
            with half:
                loss = criterion(model(inputs), targets)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.update(loss.item(), len(inputs))
            updates += 1
            rates.step_update(num_updates=updates, metric=losses.avg)
        return time.perf_counter() - start

    return run_round


def batches_of(
    config: ImageFolder | Synthetic, steps: int, device: torch.device
) -> tuple[Iterable[tuple[Tensor, Tensor]], int, int]:
    """A turn's batches, the number of classes and that of steps: files by timm's loader, or one batch on the device."""
    size = (3, config.image_size, config.image_size)
    if isinstance(config, Synthetic):
        images = torch.randn(config.global_batch, *size, device=device)
        labels = torch.randint(config.classes, (config.global_batch,), device=device)
        return [(images, labels)] * steps, config.classes, steps
    files = create_dataset("", root=str(config.path), split="train", is_training=True)
    loader = create_loader(
        files,
        input_size=size,
        batch_size=config.global_batch,
        is_training=True,
        color_jitter=0.0,
        num_workers=min(WORKERS, len(os.sched_getaffinity(0))),
        device=device,
    )
    return loader, len(files.reader.class_to_idx), len(loader)


if __name__ == "__main__":
    serve(runner_of, "timm", "torch")
