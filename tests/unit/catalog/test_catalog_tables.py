"""The shipped tables: whole, sourced, and equal to the figures they were made from."""

from __future__ import annotations

import csv
from dataclasses import fields, replace
from datetime import date
from pathlib import Path

import crafted
import pytest

from infra import catalog
from infra.catalog import Catalog, Gpu, InstanceType, Price, TableError
from infra.catalog.table import read

EFA = {row["type"]: row for row in csv.DictReader((Path(__file__).parent / "efa.csv").open())}
FAMILIES = {
    *("p3", "p3dn", "p4d", "p4de", "p5", "p5e", "p5en", "p6-b200", "p6-b300", "p6e-gb200", "p6e-gb300"),
    *("g4dn", "g5", "g5g", "g6", "g6e", "g6f", "g7", "g7e", "gr6", "gr6f"),
}
UNITS = ("_gib", "_mib", "_gb", "_gbps", "_gb_per_s", "_tflops", "_tops", "_w", "_per_hour", "_cores")
COUNTS = ("_count", "_cards", "_card", "_interfaces", "vcpus", "_share", "compute_capability", "driver_branch_min")


@pytest.fixture(scope="module")
def tables() -> Catalog:
    return catalog.load()


def test_every_row_has_its_source_and_its_day(tables: Catalog) -> None:
    for row in (*tables.types, *tables.gpus, *tables.prices):
        assert row.source
        assert date(2024, 12, 31) <= row.date <= date.today()


def test_every_aws_gpu_family_is_there(tables: Catalog) -> None:
    found = [kind for kind in tables.types if kind.gpu and kind.cloud == "aws"]

    assert {kind.name.split(".")[0] for kind in found} == FAMILIES
    assert len(found) == 70


@pytest.mark.parametrize("row", [InstanceType, Gpu, Price])
def test_every_figure_says_its_unit_in_its_name(row: type) -> None:
    figures = [field.name for field in fields(row) if str(field.type).startswith(("int", "float"))]

    assert [name for name in figures if not name.endswith((*UNITS, *COUNTS, "per_card"))] == []


@pytest.mark.parametrize("name", EFA)
def test_an_efa_type_has_the_published_cards_and_interfaces(tables: Catalog, name: str) -> None:
    published, kind = EFA[name], tables.type(name)

    assert kind.fabric == "efa"
    assert kind.gpu_count == int(published["gpus"])
    assert kind.gpu_memory_mib == int(published["gpu_memory_mib"])
    assert kind.network_gbps == kind.fabric_gbps == float(published["network_gbps"])
    assert kind.network_cards == int(published["cards"])
    assert kind.interfaces_per_card == int(published["interfaces_per_card"])
    assert kind.fabric_interfaces == int(published["efa"])
    assert kind.fabric_on_first_card == (published["efa_on_first_card"] == "yes")


@pytest.mark.parametrize("name", EFA)
def test_the_default_layout_follows_from_the_numbers_alone(tables: Catalog, name: str) -> None:
    kind = tables.type(name)
    assert kind.network_cards
    assert kind.interfaces_per_card

    first = ["interface", *(["efa-only"] if kind.fabric_on_first_card and kind.interfaces_per_card >= 2 else [])]
    others = ["efa-only"] * (kind.network_cards - 1)

    assert len(first + others) == int(EFA[name]["interfaces_of_default_layout"])
    assert (first + others).count("efa-only") == kind.fabric_interfaces


@pytest.mark.parametrize("name", EFA)
def test_an_efa_type_costs_what_was_published(tables: Catalog, name: str) -> None:
    price = tables.price(name, "us-east-1")

    assert (str(price.on_demand_per_hour) if price else "") == EFA[name]["usd_per_hour"]


def test_no_other_type_has_a_known_fabric(tables: Catalog) -> None:
    with_fabric = {kind.name for kind in tables.types if kind.fabric_interfaces and kind.cloud == "aws"}

    assert with_fabric == set(EFA)


def test_p6_b300_has_no_efa_on_its_first_card(tables: Catalog) -> None:
    kind = tables.type("p6-b300.48xlarge")

    assert (kind.network_cards, kind.fabric_interfaces, kind.fabric_on_first_card) == (17, 16, False)


@pytest.mark.parametrize(("name", "gib"), [("p4d.24xlarge", 40), ("p4de.24xlarge", 80)])
def test_p4d_has_the_a100_with_40_gib_and_p4de_the_one_with_80(tables: Catalog, name: str, gib: int) -> None:
    assert tables.type(name).gpu_memory_gib == gib


@pytest.mark.parametrize(
    ("name", "dense", "measured"),
    [("A100-SXM4-80GB", 312, 271.2), ("H100-SXM5-80GB", 989.4, 794.5), ("B200", 2250, 1745), ("L4", 121, None)],
)
def test_rates_are_dense_and_not_with_sparsity(
    tables: Catalog, name: str, dense: float, measured: float | None
) -> None:
    gpu = tables.gpu(name)

    assert (gpu.dense_tflops("bf16"), gpu.measured_tflops("bf16")) == (dense, measured)


def test_a_rate_without_measurement_is_the_peak_times_the_least_measured_share(tables: Catalog) -> None:
    rate = tables.rate(tables.gpu("L4"), "bf16")

    assert tables.least_measured_share == 1822 / 2500
    assert rate
    assert (rate.tflops, rate.measured) == (121 * 1822 / 2500, False)


@pytest.mark.parametrize(("name", "precision"), [("A100-SXM4-40GB", "fp8"), ("T4", "bf16"), ("V100-SXM2-16GB", "tf32")])
def test_a_format_is_not_claimed_before_its_generation(
    tables: Catalog, name: str, precision: catalog.Precision
) -> None:
    gpu = tables.gpu(name)

    assert not gpu.has(precision)
    assert gpu.dense_tflops(precision) is None


def test_no_gpu_has_a_rate_in_a_format_it_lacks(tables: Catalog) -> None:
    formats: tuple[catalog.Precision, ...] = ("tf32", "bf16", "fp8", "fp4")

    assert [(gpu.name, p) for gpu in tables.gpus for p in formats if gpu.dense_tflops(p) and not gpu.has(p)] == []


def test_a_gpu_has_no_more_usable_memory_than_advertised(tables: Catalog) -> None:
    for kind in tables.types:
        if kind.gpu and kind.gpu_memory_gib:
            assert kind.gpu_memory_gib <= tables.gpu(kind.gpu).memory_gb


def test_nvlink_between_the_gpus_of_a_machine_needs_a_gpu_with_nvlink(tables: Catalog) -> None:
    linked = [tables.gpu(kind.gpu) for kind in tables.types if kind.gpu and kind.nvlink]

    assert all(gpu.nvlink_gb_per_s != 0 for gpu in linked)


@pytest.mark.parametrize("stale", [98.32, 32.7726, 40.96575, 84.80])
def test_no_price_from_before_the_cuts_of_2025_is_left(tables: Catalog, stale: float) -> None:
    assert stale not in {price.on_demand_per_hour for price in tables.prices}


def test_a_misspelt_type_is_told_what_was_probably_meant(tables: Catalog) -> None:
    with pytest.raises(
        catalog.UnknownTypeError, match=r"unknown instance type 'p4d\.24xlage'; did you mean 'p4d\.24xlarge'\?"
    ):
        tables.type("p4d.24xlage")


def test_an_unknown_gpu_is_refused_by_name(tables: Catalog) -> None:
    with pytest.raises(catalog.UnknownGpuError, match="unknown GPU 'H100-SXM5-8GB'; did you mean 'H100-SXM5-80GB'"):
        tables.gpu("H100-SXM5-8GB")


def test_a_region_without_prices_is_no_type_without_a_price(tables: Catalog) -> None:
    assert tables.price("p5e.48xlarge", "us-east-1") is None
    with pytest.raises(
        catalog.UnknownRegionError, match="no price is known in region 'eu-west-9'; the tables know us-east-1"
    ):
        tables.price("p5e.48xlarge", "eu-west-9")


def test_every_contradiction_between_tables_is_told_at_once() -> None:
    lonely = crafted.machine("lonely", gpu="G9")
    empty = crafted.machine("empty", gpu_count=0)
    miscounted = crafted.with_fabric("miscounted", network_cards=4)
    fast = crafted.gpu("fast", bf16_measured_tflops=1001.0)

    with pytest.raises(TableError) as refused:
        Catalog(
            types=(lonely, empty, miscounted, miscounted),
            gpus=(crafted.gpu(), fast),
            prices=(crafted.price("gone", 1), crafted.price("lonely", 1), crafted.price("lonely", 2)),
        )

    assert list(refused.value.problems) == [
        "types.csv: miscounted stands there twice",
        "prices.csv: lonely in moon-1 stands there twice",
        "types.csv: lonely has the GPU G9, which is not in gpus.csv",
        "prices.csv: gone is not in types.csv",
        "types.csv: empty has 0 GPUs of the kind G1",
        "types.csv: miscounted has other fabric interfaces than its cards carry",
        "types.csv: miscounted has other fabric interfaces than its cards carry",
        "gpus.csv: fast was measured above its dense peak",
    ]


def test_a_first_card_kept_for_the_plain_network_carries_no_fabric_interface() -> None:
    kind = crafted.with_fabric("b300", network_cards=17, fabric_interfaces=16, fabric_on_first_card=False)

    assert crafted.catalog({kind: 1.0}).type("b300").fabric_interfaces == 16
    with pytest.raises(TableError, match="b300 has other fabric interfaces"):
        crafted.catalog({replace(kind, fabric_on_first_card=True): 1.0})


HEADER = "type,region,on_demand_per_hour,currency,source,date\n"


def test_every_wrong_cell_of_a_table_is_told_with_its_place(tmp_path: Path) -> None:
    table = tmp_path / "prices.csv"
    table.write_text(HEADER + "a,r,1,,s,2026-07-20\nb,r,-1,,,20.7.2026\nc,r,cheap,,s,2026-07-20\nd,r,1\n")

    with pytest.raises(TableError) as refused:
        read(table, Price)

    assert list(refused.value.problems) == [
        "prices.csv:3 on_demand_per_hour: '-1' is no amount",
        "prices.csv:3 source: is empty",
        "prices.csv:3 date: '20.7.2026' is no date such as 2026-07-20",
        "prices.csv:4 on_demand_per_hour: 'cheap' is no number",
        "prices.csv:5 has 3 cells, the header 6",
    ]


@pytest.mark.parametrize("header", ["type,region,price,source,date\n", "", HEADER.replace("\n", ",extra\n")])
def test_a_table_with_other_columns_is_refused(tmp_path: Path, header: str) -> None:
    table = tmp_path / "prices.csv"
    table.write_text(header)

    with pytest.raises(TableError, match=r"prices\.csv:1 the columns must be type,region"):
        read(table, Price)
