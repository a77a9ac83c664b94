"""The baseline of `bench loop`: data parallel training with nothing around it, as fast as one honestly writes it by
hand.

No report, no checkpoint, no interruption, no accumulation, no schedule; the loss is never read. The images are in
memory and cut with one gather a step.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.distributed as dist
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from training.build import data_of, model_of
from training.config.job import Job
from training.data.images import ImageSet


class Bare:
    """A model, an optimizer and the images of a job; `run` trains for some steps."""

    def __init__(self, job: Job) -> None:
        data = data_of(job)
        self.layout = torch.channels_last
        assert isinstance(data, ImageSet)
        self.images, self.labels = data.train.at(np.arange(len(data.train)), None)
        self.normalised = data.normalised
        model = model_of(job, data).to(memory_format=self.layout)
        self.model = DistributedDataParallel(model, gradient_as_bucket_view=True, forward_sync_buffers=False)
        rate, decay = job.optimizer.lr, job.optimizer.weight_decay
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=decay)
        self.rank, self.world, self.batch = dist.get_rank(), dist.get_world_size(), job.data.global_batch
        self.step = 0

    def run(self, steps: int) -> None:
        per_epoch = len(self.labels) // self.batch
        for _ in range(steps):
            epoch, place = divmod(self.step, per_epoch)
            if place == 0:
                self.order = torch.randperm(len(self.labels), generator=torch.Generator().manual_seed(epoch))
            indices = self.order[place * self.batch : (place + 1) * self.batch][self.rank :: self.world]
            images = self.normalised(self.images[indices]).contiguous(memory_format=self.layout)
            loss = functional.cross_entropy(self.model(images), self.labels[indices])
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            self.step += 1
