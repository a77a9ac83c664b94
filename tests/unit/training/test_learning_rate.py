from __future__ import annotations

import pytest
from torch import nn

from training.config.optimizer import AdamW, Sgd
from training.optim.optimizer import build, learning_rate


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [("constant", [0.5, 1, 1, 1, 1]), ("linear", [0.5, 1, 1, 0.5, 0.25]), ("cosine", [0.5, 1, 1, 0.5, 0.1464])],
)
def test_the_rate_warms_up_and_then_follows_its_schedule(schedule, rates: list[float]):
    wanted = Sgd(lr=1.0, schedule=schedule, warmup_steps=2)

    assert [learning_rate(wanted, step, 10) for step in (0, 1, 2, 6, 8)] == pytest.approx(rates, abs=1e-4)


@pytest.mark.parametrize("wanted", [Sgd(lr=0.1, weight_decay=0.1), AdamW(lr=0.1, weight_decay=0.1)])
def test_optimizers_are_fused_and_weight_decay_spares_biases(wanted: Sgd | AdamW):
    groups = build(wanted, nn.Linear(3, 2)).param_groups

    assert all(group["fused"] for group in groups)
    assert [(group["params"][0].ndim, group["weight_decay"]) for group in groups] == [(2, 0.1), (1, 0.0)]


def test_without_weight_decay_all_parameters_are_one_group():
    (group,) = build(AdamW(lr=0.1), nn.Linear(3, 2)).param_groups

    assert len(group["params"]) == 2
