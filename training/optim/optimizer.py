"""Optimizers by name, and the learning rate as a pure function of the step."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from training.config.optimizer import OPTIMIZERS, AdamW, Muon, Scheduled, Sgd
from training.config.registry import builder


def build(config: Scheduled, model: nn.Module) -> torch.optim.Optimizer:
    """The optimizer over all parameters that are trained; weight decay spares biases and norms, which have one
    dimension."""
    return builder(OPTIMIZERS, config)(config, {name: p for name, p in model.named_parameters() if p.requires_grad})


def sgd(config: Sgd, trained: dict[str, nn.Parameter]) -> torch.optim.SGD:
    """torch's SGD, fused. trained: the parameters by name."""
    groups = by_decay([*trained.values()], config.weight_decay)
    return torch.optim.SGD(groups, lr=config.lr, momentum=config.momentum, nesterov=config.nesterov, fused=True)


def adamw(config: AdamW, trained: dict[str, nn.Parameter]) -> torch.optim.AdamW:
    """torch's AdamW, fused. trained: the parameters by name."""
    groups = by_decay([*trained.values()], config.weight_decay)
    return torch.optim.AdamW(groups, lr=config.lr, betas=(config.beta1, config.beta2), fused=True)


def by_decay(parameters: list[nn.Parameter], decay: float) -> list[dict[str, Any]]:
    """One group of the parameters that decay and one of those that do not, empty ones left out: each takes time."""
    if not decay:
        return [{"params": parameters, "weight_decay": decay}]
    matrices, vectors = [p for p in parameters if p.ndim > 1], [p for p in parameters if p.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]
    return [group for group in groups if group["params"]]


class MuonAndAdamW(torch.optim.Optimizer):
    """torch's Muon, which takes matrices only, and AdamW for all else, as one optimizer with one state.

    Embeddings and the last layer are matrices too, but AdamW's, as Muon's author advises. Each group's `factor` is its
    rate's share of the scheduled one.
    """

    def __init__(self, config: Muon, trained: dict[str, nn.Parameter]) -> None:
        inner = {name: p for name, p in trained.items() if p.ndim == 2 and not outer(name)}
        rest = [p for name, p in trained.items() if name not in inner]
        decay = config.weight_decay
        self._parts: list[torch.optim.Optimizer] = []
        if inner:
            self._parts.append(
                torch.optim.Muon(
                    [*inner.values()],
                    lr=config.lr,
                    weight_decay=decay,
                    momentum=config.momentum,
                    adjust_lr_fn="match_rms_adamw",
                )
            )
        if rest:
            betas = (config.beta1, config.beta2)
            self._parts.append(torch.optim.AdamW(by_decay(rest, decay), lr=config.adamw_lr, betas=betas, fused=True))
        super().__init__([group for part in self._parts for group in part.param_groups], {})
        for group in self.param_groups:
            group["factor"] = group["lr"] / config.lr

    def _share(self) -> None:
        """The parts work on this optimizer's own state and groups, each on those that have its keys."""
        for part in self._parts:
            part.param_groups = [group for group in self.param_groups if part.defaults.keys() <= group.keys()]
            part.state = self.state

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)
        self._share()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self._share()

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        for part in self._parts:
            part.step()


def outer(name: str) -> bool:
    """Whether a parameter belongs to a model's embeddings or last layer."""
    return "embedding" in name or name.startswith(("fc.", "classifier."))


def learning_rate(config: Scheduled, step: int, steps: int) -> float:
    """The rate of a step, counted from 0, of so many."""
    if step < config.warmup_steps:
        return config.lr * (step + 1) / config.warmup_steps
    since = step - config.warmup_steps
    done = since / max(1, steps - config.warmup_steps)
    match config.schedule:
        case "cosine":
            return config.lr * 0.5 * (1 + math.cos(math.pi * done))
        case "linear":
            return config.lr * (1 - done)
        case "step":
            return config.lr * config.step_factor ** (since // (config.step_every or steps))
        case "constant":
            return config.lr


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate * group.get("factor", 1.0)
