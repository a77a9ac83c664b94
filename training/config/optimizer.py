"""Config of the optimizers and learning-rate schedules; `OPTIMIZERS` is their registry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from training.config.limits import Count, Fraction, Mistakes, Positive, Weight, Whole


@dataclass(frozen=True, kw_only=True)
class Scheduled:
    """The learning rate: linear warm-up over `warmup_steps`, then as `schedule` says.

    schedule: cosine and linear go down to 0 at the last step; step multiplies by step_factor every step_every steps.
    clip_norm: largest norm of all gradients together; 0: as they are. ema: share that an average of the weights keeps
    at a step; evaluations and the digest's checkpoint then have the average; 0: none.
    """

    lr: Positive
    schedule: Literal["cosine", "linear", "step", "constant"] = "cosine"
    warmup_steps: Whole = 0
    step_every: Count | None = None
    step_factor: Positive = 0.1
    weight_decay: Weight = 0.0
    clip_norm: Weight = 0.0
    ema: Fraction = 0.0
    if TYPE_CHECKING:
        kind: str  # every subclass has its own

    def rules(self) -> Mistakes:
        if self.schedule == "step" and self.step_every is None:
            yield "step_every", 'is missing: schedule = "step" needs it'
        if self.schedule != "step" and self.step_every is not None:
            yield "step_every", f'needs schedule = "step", not "{self.schedule}"'


@dataclass(frozen=True, kw_only=True)
class Sgd(Scheduled):
    """Stochastic gradient descent with (Nesterov) momentum."""

    kind: Literal["sgd"] = "sgd"
    momentum: Fraction = 0.9
    nesterov: bool = False

    def rules(self) -> Mistakes:
        yield from super().rules()
        if self.nesterov and not self.momentum:
            yield "nesterov", "needs momentum greater than 0"


@dataclass(frozen=True, kw_only=True)
class AdamW(Scheduled):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019)."""

    kind: Literal["adamw"] = "adamw"
    beta1: Fraction = 0.9
    beta2: Fraction = 0.999


@dataclass(frozen=True, kw_only=True)
class Muon(Scheduled):
    """Muon (Jordan 2024) for the matrices inside the model, AdamW for the rest: embeddings, the last layer, vectors.

    lr: of the matrices. adamw_lr: of the rest, under the same schedule.
    """

    kind: Literal["muon"] = "muon"
    adamw_lr: Positive = 0.001
    momentum: Fraction = 0.95
    beta1: Fraction = 0.9
    beta2: Fraction = 0.95


OPTIMIZERS = {
    Sgd: "training.optim.optimizer:sgd",
    AdamW: "training.optim.optimizer:adamw",
    Muon: "training.optim.optimizer:MuonAndAdamW",
}
