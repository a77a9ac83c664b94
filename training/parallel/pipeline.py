"""Consecutive layers on different ranks, by torch's pipelining schedules."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

from training.config import run
from training.config.errors import refusal
from training.data.batches import MicroBatch
from training.parallel.base import Loss, Parallel, Precision
from training.parallel.process_group import Ranks
from training.parallel.tensor import reduce_over

SCHEDULES = {"1f1b": Schedule1F1B, "gpipe": ScheduleGPipe}
MOST_DIMENSIONS = 8


class Layers(nn.Sequential):
    """What comes in and goes out travels between ranks, which takes row-major tensors only."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002 (torch's name)
        return super().forward(input.contiguous()).contiguous()


class Pipeline(Parallel):
    """The ranks of a row hold consecutive layers; rows share the batch.

    The model keeps its names, but a rank holds only its own layers: the others are taken out of it.
    """

    sharded = True
    times_forward = False

    def __init__(
        self, config: run.Pipeline, model: nn.Module, ranks: Ranks, global_batch: int, mesh: DeviceMesh
    ) -> None:
        super().__init__(model, ranks, global_batch)
        row, self.dp_size = mesh["data"].get_local_rank(), mesh["data"].size()
        self.dp_shards, self.eval_shard = range(row, row + 1), (row, self.dp_size)
        self._column, self._row = mesh["data"].get_group(), mesh["model"].get_group()
        self._place, stages = mesh["model"].get_local_rank(), config.stages
        self._first, self._last = self._place == 0, self._place == stages - 1
        layers = own_layers(model, self._place, stages)
        self._layers = Layers(*layers).to(memory_format=torch.contiguous_format)
        stage = PipelineStage(self._layers, self._place, stages, ranks.device, group=self._row)
        schedule = SCHEDULES[config.schedule]
        self._schedule = schedule(stage, config.micro_batches, loss_fn=self._weighted, scale_grads=False)

    def forward_backward(self, part: MicroBatch, precision: Precision, loss: Loss) -> torch.Tensor:
        self._loss = loss
        losses: list[torch.Tensor] = []
        with precision.autocast():
            if self._first:
                self._schedule.step(part.inputs, return_outputs=False)
            elif self._last:
                self._schedule.step(target=part.labels, losses=losses, return_outputs=False)
            else:
                self._schedule.step(return_outputs=False)
        nothing = torch.zeros((), device=part.inputs.device)
        return torch.stack(losses).sum().detach() / self.weight if losses else nothing

    def _weighted(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return self._loss(outputs.float(), labels) * self.weight

    def reduce(self, step: int) -> None:
        reduce_over(self._column, self.model, self.dp_size)

    def evaluate_forward(self, inputs: torch.Tensor) -> torch.Tensor | None:
        """The outputs, on the last stage."""
        x = inputs if self._first else self._received(inputs.device)
        x = self._layers(x)
        if self._last:
            return x
        shape = torch.zeros(MOST_DIMENSIONS, dtype=torch.int64, device=x.device)
        shape[: x.ndim] = torch.tensor(x.shape)
        for tensor in (shape, x.float().contiguous()):
            dist.send(tensor, group=self._row, group_dst=self._place + 1)
        return None

    def _received(self, device: torch.device) -> torch.Tensor:
        shape = torch.zeros(MOST_DIMENSIONS, dtype=torch.int64, device=device)
        dist.recv(shape, group=self._row, group_src=self._place - 1)
        x = torch.empty([size for size in shape.tolist() if size], device=device)
        dist.recv(x, group=self._row, group_src=self._place - 1)
        return x

    def broadcast_buffers(self, buffers: list[torch.Tensor]) -> None:
        self.ranks.broadcast_buffers(buffers, self._column)


def own_layers(model: nn.Module, place: int, stages: int) -> list[nn.Module]:
    """This stage's share of the model's layers, equally many that have weights; takes the others out of the
    model. Raises JobError where the model is not one layer behind the other, or has fewer than there are stages."""
    name = type(model).__name__
    if not hasattr(model, "chain"):
        raise refusal("parallel.kind", f"{name} is not a sequence of layers; use fsdp or tensor")
    chain: list[nn.Module] = model.chain()  # pyright: ignore[reportCallIssue]
    heavy = [any(True for _ in layer.parameters()) for layer in chain]
    if sum(heavy) < stages:
        raise refusal("parallel.stages", f"{name} has {sum(heavy)} layers with weights; set fewer stages")
    before = [max(0, sum(heavy[: number + 1]) - 1) for number in range(len(chain))]
    stage_of = [count * stages // sum(heavy) for count in before]
    names = {module: name for name, module in model.named_modules()}
    for layer, stage in zip(chain, stage_of, strict=True):
        if stage != place and layer in names:
            model.set_submodule(names[layer], nn.Identity())
    return [layer for layer, stage in zip(chain, stage_of, strict=True) if stage == place]
