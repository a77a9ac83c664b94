"""`gpufleet catalog refresh`: what it asks of AWS, what it changes, and what it leaves alone."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import boto3
import pytest
from aws_answers import CREDENTIALS, REGION, answering, days_ago, instance_types, product, spot_change

from infra.catalog import InstanceType, Offering, Price, SpotPrice, load
from infra.catalog.merge import Answers, merge, together
from infra.catalog.table import read, write
from ops.clouds.aws import catalog_source
from ops.commands.catalog import refresh
from ops.console.phases import Phases
from ops.console.terminal import Screen
from ops.errors import CommandError

TABLES = load()
SHIPPED = Path(refresh.TABLES)
TODAY = date(2026, 12, 1)
PRICES = [product("p4d.24xlarge", "20.0"), product("c7i.large", "0.08925"), product("m5.large", "0.096")]
SPOT = [spot_change("p4d.24xlarge", "use1-az2", "7.5", days_ago(10))]


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for table in SHIPPED.glob("*.csv"):
        shutil.copy(table, tmp_path)
    return tmp_path


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    def refreshed(
        types: dict[str, dict[str, Any]] | None = None, agreed: Callable[[dict[str, Any]], bool] = lambda _: True
    ) -> dict[str, Any]:
        with answering(types or instance_types(), PRICES, SPOT) as account:
            monkeypatch.setattr(catalog_source, "Account", lambda _: account)
            return refresh.refresh([REGION], Phases(Screen(), quiet=True), agreed, folder)

    return refreshed


def changes(told: dict[str, Any], table: str, kind: str) -> list[str]:
    return [each["row"] for each in told["changes"] if (each["table"], each["kind"]) == (table, kind)]


@pytest.mark.parametrize(
    ("table", "row"), [("types", InstanceType), ("prices", Price), ("offerings", Offering), ("spot", SpotPrice)]
)
def test_a_table_that_is_written_is_the_one_that_was_read(table: str, row: type, tmp_path: Path) -> None:
    write(tmp_path / "copy.csv", read(SHIPPED / f"{table}.csv", row), row)

    assert (tmp_path / "copy.csv").read_text() == (SHIPPED / f"{table}.csv").read_text()


def test_a_refresh_writes_what_aws_answers(run: Callable[..., dict[str, Any]], folder: Path) -> None:
    told = run()

    tables = load(folder)
    price, (spot,) = tables.price("p4d.24xlarge", REGION), tables.spot_prices("p4d.24xlarge", REGION)
    assert told["written"]
    assert price is not None
    assert (price.on_demand_per_hour, price.source) == (20.0, "AWS Price List GetProducts")
    assert (spot.usd_per_hour, spot.days, spot.source) == (7.5, 7, "EC2 DescribeSpotPriceHistory")
    assert tables.type("p4d.24xlarge").source == "EC2 DescribeInstanceTypes"


def test_a_refresh_tells_each_figure_that_changes(run: Callable[..., dict[str, Any]]) -> None:
    told = run()

    (price,) = (each for each in told["changes"] if (each["table"], each["kind"]) == ("prices", "changed"))
    assert price["row"] == "p4d.24xlarge in us-east-1"
    assert price["cells"] == {"on_demand_per_hour": {"before": 21.957642, "after": 20.0}}
    assert changes(told, "types", "changed") == []
    assert "on_demand_per_hour: 21.957642 → 20.0" in refresh.text(told)


def test_rows_that_aws_does_not_give_are_kept_and_told(run: Callable[..., dict[str, Any]], folder: Path) -> None:
    told = run()

    assert {"p3.16xlarge", "p6e-gb200.36xlarge"} <= set(changes(told, "types", "kept"))
    assert load(folder).type("p3.16xlarge") == TABLES.type("p3.16xlarge")
    assert "p5.48xlarge in us-east-1" in changes(told, "prices", "kept")


def test_our_notes_stay(run: Callable[..., dict[str, Any]], folder: Path) -> None:
    run()

    assert load(folder).type("p4d.24xlarge").notes == TABLES.type("p4d.24xlarge").notes != ""


def test_nothing_is_written_before_somebody_agrees_to_the_changes(
    run: Callable[..., dict[str, Any]], folder: Path
) -> None:
    def refused(shown: dict[str, Any]) -> bool:
        assert changes(shown, "prices", "changed")
        return False

    told = run(agreed=refused)

    assert not told["written"]
    assert (folder / "prices.csv").read_bytes() == (SHIPPED / "prices.csv").read_bytes()


def test_a_gpu_that_nobody_knows_is_left_out_and_said(run: Callable[..., dict[str, Any]], folder: Path) -> None:
    strange = copy.deepcopy(instance_types()["p5.48xlarge"])
    strange["InstanceType"] = "p7.48xlarge"
    strange["GpuInfo"]["Gpus"][0]["Name"] = "R100"

    told = run({**instance_types(), "p7.48xlarge": strange})

    assert told["left_out"] == ["p7.48xlarge: gpus.csv has no GPU that EC2 calls R100 (81920 MiB)"]
    assert all(kind.name != "p7.48xlarge" for kind in load(folder).types)


def test_a_new_type_with_a_known_gpu_is_added(run: Callable[..., dict[str, Any]], folder: Path) -> None:
    larger = {**copy.deepcopy(instance_types()["g6.48xlarge"]), "InstanceType": "g6.96xlarge"}

    told = run({**instance_types(), "g6.96xlarge": larger})

    assert changes(told, "types", "new") == ["g6.96xlarge"]
    assert load(folder).type("g6.96xlarge").gpu == "L4"


def test_other_clouds_and_regions_stay_as_they_are() -> None:
    cloud = replace(TABLES.types[0], cloud="alicloud", name="ecs.g7.huge")
    elsewhere = Price(type="c7i.large", region="eu-west-1", on_demand_per_hour=1, source="hand", date=TODAY)
    old = replace(TABLES, types=(*TABLES.types, cloud), prices=(*TABLES.prices, elsewhere))
    nothing = Answers(regions=(REGION,), types=(), offerings=(), prices=(), spot=())

    merged = merge(old, nothing, "aws")

    assert merged.catalog.types == old.types
    assert merged.catalog.prices == old.prices
    told = {(change.table, change.row) for change in merged.changes}
    assert ("types", "ecs.g7.huge") not in told
    assert ("prices", "c7i.large in eu-west-1") not in told


def test_a_type_that_one_of_two_regions_has_is_no_news() -> None:
    here = Answers(regions=(REGION,), types=TABLES.types, offerings=(), prices=(), spot=(), left_out=("x",))
    there = Answers(regions=("eu-west-1",), types=TABLES.types[:1], offerings=(), prices=(), spot=(), left_out=("x",))

    both = together([here, there])

    assert both.regions == (REGION, "eu-west-1")
    assert both.left_out == ("x",)
    assert [change for change in merge(TABLES, both, "aws").changes if change.table == "types"] == []


def test_offerings_that_are_gone_go_where_aws_was_asked_and_nowhere_else() -> None:
    nothing = Answers(regions=(REGION,), types=(), offerings=(), prices=(), spot=())

    merged = merge(TABLES, nothing, "aws")

    assert {row.region for row in TABLES.offerings} - {row.region for row in merged.catalog.offerings} == {REGION}
    gone = [change.row for change in merged.changes if (change.table, change.kind) == ("offerings", "gone")]
    assert "p4d.24xlarge in us-east-1" in gone


def test_without_credentials_one_line_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CREDENTIALS:
        if name.startswith("AWS_") and name != "AWS_EC2_METADATA_DISABLED":
            monkeypatch.delenv(name)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)  # it remembers credentials
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(folder / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(folder / "none"))

    with pytest.raises(CommandError) as failure:
        refresh.refresh([REGION], Phases(Screen(), quiet=True), lambda _: True, folder)

    assert str(failure.value).count("\n") == 0
    assert "Unable to locate credentials" in str(failure.value)
