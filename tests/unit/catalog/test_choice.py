"""The choice of types: what is refused and why, and what a ranking promises whatever the tables hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import crafted
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infra import catalog
from infra.catalog import Catalog, InstanceType
from infra.catalog.selection import Ask, AskError, Choice, choose


def ask(gpus: int = 8, **rest: Any) -> Ask:
    return Ask(gpus=gpus, region=crafted.REGION, **rest)


def aws(gpus: int = 8, **rest: Any) -> Choice:
    return choose(Ask(**{"gpus": gpus, "region": "us-east-1", "clouds": ("aws",), **rest}), catalog.load())


def names(choice: Choice) -> list[str]:
    return [offer.kind.name for offer in choice.ranked]


def reason(choice: Choice, name: str) -> str:
    return next(rejected.reason for rejected in choice.rejected if rejected.type == name)


def offered(choice: Choice, name: str) -> tuple[int, float]:
    """Nodes of a type, and USD per PFLOP-hour in cents' precision."""
    offer = next(offer for offer in choice.ranked if offer.kind.name == name)
    return offer.nodes, round(offer.usd_per_pflop_hour, 2)


@pytest.mark.parametrize(
    ("name", "nodes", "usd_per_pflop_hour"),
    [
        ("p6-b200.48xlarge", 1, 8.16),
        ("p5.48xlarge", 1, 8.66),
        ("p5.4xlarge", 8, 8.66),
        ("p6-b300.48xlarge", 1, 10.06),
        ("p5en.48xlarge", 1, 9.96),
        ("p4d.24xlarge", 1, 10.12),
        ("p4de.24xlarge", 1, 12.65),
    ],
)
def test_measured_work_costs_what_was_published(name: str, nodes: int, usd_per_pflop_hour: float) -> None:
    assert offered(aws(), name) == (nodes, usd_per_pflop_hour)


def test_eight_gpus_are_one_p4d_or_eight_small_g5() -> None:
    choice = aws(fabric="none")

    assert offered(choice, "p4d.24xlarge")[0] == 1
    assert offered(choice, "g5.xlarge")[0] == 8
    assert offered(choice, "g5.12xlarge")[0] == 2


def test_a_node_too_few_is_never_offered() -> None:
    assert [offered(aws(gpus=gpus), "p4d.24xlarge")[0] for gpus in (1, 8, 9, 16, 17)] == [1, 1, 2, 2, 3]


def test_a_required_fabric_refuses_what_takes_several_nodes_without_one() -> None:
    choice = aws(fabric="required")

    assert reason(choice, "g5.xlarge") == "takes more than one node and has no fabric between nodes"
    assert {"g5.48xlarge", "g5.8xlarge", "p4d.24xlarge"} <= set(names(choice))


def test_a_required_fabric_asks_nothing_of_a_single_node() -> None:
    assert "g5.xlarge" in names(aws(gpus=1, fabric="required"))


def test_a_fabric_of_unknown_layout_is_not_one_to_rely_on() -> None:
    choice = aws(fabric="required")

    assert reason(choice, "p6e-gb200.36xlarge") == "its fabric interfaces are not known"


def test_a_preferred_fabric_ranks_joined_nodes_before_cheaper_apart_ones() -> None:
    apart, joined = crafted.machine("apart"), crafted.with_fabric("joined")
    tables = crafted.catalog({apart: 1.0, joined: 2.0})

    assert names(choose(ask(fabric="preferred"), tables)) == ["joined", "apart"]
    assert names(choose(ask(fabric="none"), tables)) == ["apart", "joined"]


def test_idle_gpus_are_paid_for_but_do_no_work() -> None:
    small, large = crafted.machine("small"), crafted.machine("large", gpu_count=8)
    tables = crafted.catalog({small: 2.0, large: 8.0})

    choice = choose(ask(gpus=1), tables)

    assert names(choice) == ["small", "large"]
    assert [offer.usd_per_pflop_hour for offer in choice.ranked] == [2.0, 8.0]
    assert [offer.usd_per_gpu_hour for offer in choice.ranked] == [2.0, 1.0]


def test_equal_work_for_equal_money_goes_to_fewer_nodes() -> None:
    small, large = crafted.machine("a-small"), crafted.machine("z-large", gpu_count=8)

    assert names(choose(ask(), crafted.catalog({small: 6.88, large: 55.04}))) == ["z-large", "a-small"]


def test_a_measured_gpu_is_ranked_by_its_measurement_and_another_by_the_least_share() -> None:
    measured = crafted.gpu("measured", bf16_measured_tflops=600.0)
    praised = crafted.gpu("praised", bf16_dense_tflops=990.0)
    priced = {crafted.machine("m", gpu="measured"): 1.0, crafted.machine("p", gpu="praised"): 1.0}

    choice = choose(ask(), crafted.catalog({**priced}, measured, praised))

    assert [(offer.kind.name, offer.rate.measured) for offer in choice.ranked] == [("m", True), ("p", False)]
    assert [round(offer.rate.tflops, 6) for offer in choice.ranked] == [600.0, 594.0]


@pytest.mark.parametrize(
    ("name", "asked", "why"),
    [
        ("g5.xlarge", {"gpu_memory_gib": 24}, "22.4 GiB a GPU (A10G, sold as 24 GB), 24 GiB asked"),
        ("p4d.24xlarge", {"gpu_memory_gib": 41}, "40.0 GiB a GPU (A100-SXM4-40GB, sold as 40 GB), 41 GiB asked"),
        ("p4d.24xlarge", {"precision": "fp8"}, "A100-SXM4-40GB does not compute in fp8"),
        ("g4dn.xlarge", {}, "T4 does not compute in bf16"),
        ("g7e.48xlarge", {}, "no dense bf16 figure is known for RTX-PRO-6000-Blackwell-SE"),
        ("g6f.large", {}, "rents 0.125 of a GPU, not a whole one"),
        ("p5e.48xlarge", {}, "no on-demand price is known in us-east-1"),
        ("p6e-gb200.36xlarge", {}, "not sold on demand, only as capacity-block"),
        ("p6e-gb300.36xlarge", {}, "its usable GPU memory is not known"),
        ("p5.48xlarge", {"budget_usd_per_hour": 55}, "1 of it cost 55.04 USD/h, more than 55"),
    ],
)
def test_a_rejected_type_says_why(name: str, asked: dict[str, Any], why: str) -> None:
    assert reason(aws(**asked), name) == why


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"gpus": 0}, "gpus: 0 is too few"),
        ({"gpu_memory_gib": -1.0}, "gpu memory: -1.0 is no amount"),
        ({"gpu_memory_gib": float("nan")}, "gpu memory: nan is no amount"),
        ({"budget_usd_per_hour": float("nan")}, "budget: nan is no amount"),
        ({"precision": "bf61"}, "precision: 'bf61' is none of .*; did you mean 'bf16'?"),
        ({"fabric": "require"}, "fabric: 'require' is none of .*; did you mean 'required'?"),
    ],
)
def test_an_ask_without_sense_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(AskError, match=message):
        ask(**wrong)


def test_an_unknown_cloud_is_refused_before_anything_is_ranked() -> None:
    with pytest.raises(AskError, match=r"cloud: 'awz' is none of alicloud, aws, azure, tencent; did you mean 'aws'\?"):
        aws(clouds=("awz",))


def test_only_the_asked_clouds_are_looked_at() -> None:
    here, there = crafted.machine("here"), crafted.machine("there", cloud="other")

    choice = choose(ask(clouds=("other",)), crafted.catalog({here: 1.0, there: 2.0}))

    assert names(choice) == ["there"]
    assert choice.rejected == ()


# Properties, over tables and asks of every kind.

GPUS = (
    crafted.gpu("measured", bf16_measured_tflops=790.0, fp8_dense_tflops=2000.0),
    crafted.gpu("unmeasured", bf16_dense_tflops=362.0),
    crafted.gpu("unknown", bf16_dense_tflops=None),
    crafted.gpu("old", compute_capability=7.0, bf16_dense_tflops=None, fp16_dense_tflops=125.0),
)
SOUND = st.sampled_from([True] * 7 + [False])  # most machines could be offered, or the properties would say little
USD_PER_HOUR = st.integers(1, 10_000).map(lambda cents: cents / 100)


@st.composite
def machines(draw: st.DrawFn, name: str) -> InstanceType:
    made = draw(st.sampled_from([crafted.machine, crafted.with_fabric]))
    return made(
        name,
        gpu=draw(st.sampled_from(["measured", "unmeasured"] if draw(SOUND) else ["unknown", "old"])),
        gpu_count=draw(st.sampled_from([1, 2, 4, 8])),
        gpu_memory_mib=draw(st.sampled_from([40 * 1024, 80 * 1024])) if draw(SOUND) else None,
        gpu_share=1.0 if draw(SOUND) else 0.5,
        cloud=draw(st.sampled_from(["test", "other"])),
    )


@st.composite
def catalogs(draw: st.DrawFn) -> Catalog:
    kinds = [draw(machines(f"type-{number}")) for number in range(draw(st.integers(0, 8)))]
    return crafted.catalog({kind: draw(USD_PER_HOUR) if draw(SOUND) else None for kind in kinds}, *GPUS)


asks = st.builds(
    ask,
    gpus=st.integers(1, 40),
    gpu_memory_gib=st.sampled_from([0.0, 24.0, 41.0]),
    precision=st.sampled_from(["bf16", "bf16", "fp16", "fp8"]),
    fabric=st.sampled_from(["required", "preferred", "none"]),
    budget_usd_per_hour=st.one_of(st.none(), st.floats(0, 2000)),
)


@given(asks, catalogs())
@settings(max_examples=60, deadline=None)
def test_every_gpu_type_is_either_ranked_or_rejected_once(wanted: Ask, tables: Catalog) -> None:
    choice = choose(wanted, tables)

    seen = [*names(choice), *(rejected.type for rejected in choice.rejected)]

    assert sorted(seen) == sorted(kind.name for kind in tables.types if kind.gpu)


@given(asks, catalogs())
@settings(max_examples=60, deadline=None)
def test_an_offer_holds_all_gpus_and_no_node_too_many(wanted: Ask, tables: Catalog) -> None:
    for offer in choose(wanted, tables).ranked:
        assert offer.gpus >= wanted.gpus > offer.gpus - offer.kind.gpu_count
        assert offer.nodes == 1 or offer.kind.fabric or wanted.fabric != "required"
        assert wanted.budget_usd_per_hour is None or offer.usd_per_hour <= wanted.budget_usd_per_hour


@given(asks, catalogs(), st.data())
@settings(max_examples=60, deadline=None)
def test_a_cheaper_identical_type_never_ranks_lower(wanted: Ask, tables: Catalog, data: st.DataObject) -> None:
    kinds = [kind for kind in tables.types if kind.gpu and tables.price(kind.name, crafted.REGION)]
    if not kinds:
        return
    kind = data.draw(st.sampled_from(kinds))
    price = tables.price(kind.name, crafted.REGION)
    assert price
    bargain = price.on_demand_per_hour * data.draw(st.sampled_from([0.999_999_999, 0.99, 0.5]))
    twin = replace(kind, name="zz-twin")
    more = replace(tables, types=(*tables.types, twin), prices=(*tables.prices, crafted.price("zz-twin", bargain)))

    ranked = names(choose(wanted, more))

    if kind.name in ranked:
        assert ranked.index("zz-twin") < ranked.index(kind.name)


@given(asks, catalogs(), st.floats(0, 2000), st.floats(0, 2000))
@settings(max_examples=60, deadline=None)
def test_raising_the_budget_removes_no_ranked_type_and_swaps_none(
    wanted: Ask, tables: Catalog, one: float, other: float
) -> None:
    poor, rich = sorted((one, other))

    before = names(choose(replace(wanted, budget_usd_per_hour=poor), tables))
    after = names(choose(replace(wanted, budget_usd_per_hour=rich), tables))

    assert [name for name in after if name in before] == before
