"""Optimizers and the learning rate as a function of the step."""

from __future__ import annotations

import math

import torch
from torch import nn

from training import config


def build(wanted: config.Sgd | config.AdamW, model: nn.Module) -> torch.optim.Optimizer:
    """The optimizer over all parameters; weight decay spares biases and norms, which have one dimension."""
    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": wanted.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    if isinstance(wanted, config.AdamW):
        return torch.optim.AdamW(groups, lr=wanted.lr, betas=(wanted.beta1, wanted.beta2), fused=True)
    return torch.optim.SGD(groups, lr=wanted.lr, momentum=wanted.momentum, nesterov=wanted.nesterov, fused=True)


def learning_rate(wanted: config.Scheduled, step: int, steps: int) -> float:
    """The rate of a step, counted from 0, of so many: linear warm-up, then cosine or linear to 0, or constant."""
    if step < wanted.warmup_steps:
        return wanted.lr * (step + 1) / wanted.warmup_steps
    done = (step - wanted.warmup_steps) / max(1, steps - wanted.warmup_steps)
    factor = {"constant": 1.0, "linear": 1 - done, "cosine": 0.5 * (1 + math.cos(math.pi * done))}[wanted.schedule]
    return wanted.lr * factor


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate
