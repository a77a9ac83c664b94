"""The interval that loses least."""

from __future__ import annotations

import math

import pytest

from training.checkpoint.interval import Interval, daly
from training.config.run import Checkpoint


def lost(interval: float, cost: float, mtbf: float) -> float:
    """Wall time a second of work, interruptions exponential (Daly 2006, equation 20, no restart time)."""
    return mtbf * math.expm1((interval + cost) / mtbf) / interval


@pytest.mark.parametrize(("cost", "mtbf"), [(0.05, 7200.0), (30.0, 8500.0), (300.0, 1800.0)])
def test_no_other_interval_loses_less(cost: float, mtbf: float):
    best = daly(cost, mtbf)

    assert all(lost(best, cost, mtbf) <= lost(best * factor, cost, mtbf) for factor in (0.7, 0.9, 1.1, 1.4))


def test_a_save_that_costs_more_than_it_can_keep_is_made_once_an_interruption():
    assert daly(20.0, 10.0) == 10.0


def test_auto_follows_the_dearest_save():
    interval = Interval(Checkpoint(every_seconds="auto", mtbf_hours=2), world=4)
    assert interval.seconds == 60

    interval.measured(0.05)
    assert interval.seconds == pytest.approx(math.sqrt(2 * 0.05 * 7200), rel=0.01)
    longer = daly(0.2, 7200)
    interval.measured(0.2)
    interval.measured(0.1)
    assert interval.seconds == longer


def test_a_time_that_was_set_stays_and_none_is_none():
    fixed, never = Interval(Checkpoint(every_seconds=9.0), world=1), Interval(Checkpoint(), world=1)
    fixed.measured(1.0)
    never.measured(1.0)

    assert (fixed.seconds, never.seconds) == (9.0, None)
