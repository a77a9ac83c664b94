"""Hugging Face Accelerate around a loop as its image example writes it: samples one by one through a DataLoader,
everything prepared, the loss summed up on the device."""
# pyright: reportMissingImports=false

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch
from accelerate import Accelerator
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from training.bench.baselines import serve
from training.build import data_of, model_of
from training.config.job import Job
from training.data.images import ImageSet


def runner_of(job: Job) -> Callable[[], float]:
    data = data_of(job)
    assert isinstance(data, ImageSet)
    assert isinstance(data.mean, float)
    assert isinstance(data.std, float)
    images, labels = data.train.at(np.arange(len(data.train)), None)
    pairs = TensorDataset(images.float(), labels)
    samples = DataLoader(pairs, batch_size=job.data.global_batch, shuffle=True, drop_last=True)
    model = model_of(job, data).to(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), lr=job.optimizer.lr, weight_decay=job.optimizer.weight_decay)
    rates = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0)
    accelerator = Accelerator(cpu=True, mixed_precision="no")
    model, optimizer, samples, rates = accelerator.prepare(model, optimizer, samples, rates)
    steps, mean, std = job.total_steps(len(data.train)), data.mean, data.std

    def run_round() -> float:
        done, total = 0, torch.zeros(())
        model.train()
        start = time.perf_counter()
        while True:
            for pixels, targets in samples:
                images = ((pixels - mean) / std).contiguous(memory_format=torch.channels_last)
                loss = functional.cross_entropy(model(images), targets)
                total += loss.detach().float()
                accelerator.backward(loss)
                optimizer.step()
                rates.step()
                optimizer.zero_grad()
                done += 1
                if done % job.log_every == 0:
                    total.item()
                if done == steps:
                    return time.perf_counter() - start

    return run_round


if __name__ == "__main__":
    serve(runner_of, "accelerate", "torch")
