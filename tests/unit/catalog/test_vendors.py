"""The vendors' evaluation: 23 indices in five dimensions, and a sum that anybody can check."""

from __future__ import annotations

import pytest

from ops.commands import vendors
from ops.errors import CommandError

RATE = "CNY=7.10@2026-11-20"


def test_there_are_23_indices_in_five_dimensions_of_the_agreed_weights() -> None:
    told = vendors.compare(RATE)

    assert list(told["weights"].values()) == [30, 25, 20, 15, 10]
    for vendor in told["vendors"]:
        indices = [index for dimension in vendor["dimensions"] for index in dimension["indices"]]
        assert len(indices) == 23
        assert sum(index["weight"] for index in indices) == 100


def test_a_score_is_the_sum_of_its_parts() -> None:
    for vendor in vendors.compare(RATE)["vendors"]:
        points = sum(
            (index["score"] or 0) / 10 * index["weight"]
            for dimension in vendor["dimensions"]
            for index in dimension["indices"]
        )
        assert vendor["score"] == pytest.approx(points, abs=0.01)


def test_every_figure_has_a_source_and_what_nobody_knows_has_none() -> None:
    for vendor in vendors.compare(RATE)["vendors"]:
        for dimension in vendor["dimensions"]:
            for index in dimension["indices"]:
                assert (index["value"] is None) == (index["score"] is None)
                assert index["source"]
                assert (index["name"] in vendor["unknown"]) == (index["value"] is None)


def test_weights_change_the_order_of_nothing_but_the_sum() -> None:
    cost = vendors.compare(RATE, "compute=0,supply=0,operation=0,openness=0")

    (aws,) = [each for each in cost["vendors"] if each["vendor"] == "aws"]
    assert cost["weights"]["cost"] == 25
    assert aws["score"] == pytest.approx(100 * aws["dimensions"][1]["points"] / 25, abs=0.01)


@pytest.mark.parametrize(
    "weights", ["speed=3", "cost=much", "cost=-1", "compute=0,cost=0,supply=0,operation=0,openness=0"]
)
def test_weights_without_sense_are_a_usage_error(weights: str) -> None:
    with pytest.raises(CommandError, match="weights:") as refused:
        vendors.compare(RATE, weights)

    assert refused.value.code == 2


def test_without_a_rate_prices_in_yuan_are_not_known() -> None:
    (ali,) = [each for each in vendors.compare()["vendors"] if each["vendor"] == "alicloud"]

    assert {"cheapest_work", "cheapest_gpu"} <= set(ali["unknown"])
    assert "not known, counted as 0" in vendors.text(vendors.compare())
