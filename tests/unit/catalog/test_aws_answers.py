"""AWS's answers as rows: the shipped tables are what EC2 says, cell by cell."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from aws_answers import instance_types, product, spot_change, zone_offerings

from infra.catalog import InstanceType, load
from infra.clouds.aws.catalog import ec2

TODAY = date(2026, 11, 21)
BEGIN = datetime(2026, 11, 14, tzinfo=UTC)
END = BEGIN + timedelta(days=7)
TABLES = load()


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    from aws_answers import CREDENTIALS

    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)


def bare(kind: InstanceType) -> InstanceType:
    return replace(kind, notes="", source="", date=TODAY)


def test_every_type_that_ec2_describes_is_the_shipped_row() -> None:
    described = instance_types()
    rows = [kind for kind in TABLES.types if kind.name in described]

    made = [ec2.instance_type(described[kind.name], TABLES.gpus, TODAY) for kind in rows]

    assert len(rows) == 77
    assert [bare(kind) for kind in made] == [bare(kind) for kind in rows]


def test_every_offering_of_the_region_is_the_shipped_row() -> None:
    ours = [offer for offer in zone_offerings() if offer["InstanceType"] in {kind.name for kind in TABLES.types}]
    shipped = {row.type: row.zone_ids for row in TABLES.offerings if row.region == "us-east-1"}

    assert {row.type: row.zone_ids for row in ec2.offerings(ours, "us-east-1", TODAY)} == shipped


def test_a_gpu_that_the_tables_do_not_have_is_told() -> None:
    device = {"Name": "X1", "Manufacturer": "NVIDIA", "Count": 1, "MemoryInfo": {"SizeInMiB": 65536}}

    with pytest.raises(ec2.UnknownDeviceError, match=r"no GPU that EC2 calls X1 \(65536 MiB\)"):
        ec2.gpu_of(device, TABLES.gpus)


@pytest.mark.parametrize(
    ("performance", "speed"),
    [
        ("4x 100 Gigabit", (400, False)),
        ("Up to 12.5 Gigabit", (12.5, True)),
        ("3200 Gigabit", (3200, False)),
        ("High", (None, None)),
    ],
)
def test_a_network_speed_is_read_from_its_words(performance: str, speed: tuple[float | None, bool | None]) -> None:
    assert ec2.network_speed(performance) == speed


def test_a_product_has_its_price_by_the_hour() -> None:
    row = ec2.price(product("p4d.24xlarge", "21.9576420000"), "us-east-1", TODAY)

    assert row is not None
    assert (row.type, row.region, row.on_demand_per_hour) == ("p4d.24xlarge", "us-east-1", 21.957642)


@pytest.mark.parametrize("free", [product("p5.48xlarge", "0.0000000000"), product("p5.48xlarge", "1.0", unit="GB-Mo")])
def test_a_product_without_a_price_by_the_hour_has_none(free: str) -> None:
    assert ec2.price(free, "us-east-1", TODAY) is None


def test_a_spot_price_weighs_as_long_as_it_held() -> None:
    log = [
        spot_change("p4d.24xlarge", "use1-az2", "20.0", BEGIN + timedelta(days=6)),
        spot_change("p4d.24xlarge", "use1-az2", "6.0", BEGIN),
    ]

    (row,) = ec2.spot(log, {}, "us-east-1", BEGIN, END)

    assert row.usd_per_hour == 8.0
    assert (row.least_usd_per_hour, row.most_usd_per_hour, row.days) == (6.0, 20.0, 7)


def test_what_held_before_the_window_holds_from_its_begin() -> None:
    older = spot_change("p4d.24xlarge", "use1-az2", "9.0", BEGIN - timedelta(days=30))
    newer = spot_change("p4d.24xlarge", "use1-az2", "7.0", BEGIN - timedelta(days=2))

    (row,) = ec2.spot([newer, older], {}, "us-east-1", BEGIN, END)

    assert (row.usd_per_hour, row.most_usd_per_hour, row.days) == (7.0, 7.0, 7)


def test_zones_are_watched_apart_and_scored() -> None:
    log = [spot_change("p4d.24xlarge", zone, usd, BEGIN) for zone, usd in (("use1-az2", "8.0"), ("use1-az4", "9.0"))]

    rows = list(ec2.spot(log, {("p4d.24xlarge", "use1-az2"): 3}, "us-east-1", BEGIN, END))

    assert [(row.zone_id, row.usd_per_hour, row.placement_score) for row in rows] == [
        ("use1-az2", 8.0, 3),
        ("use1-az4", 9.0, None),
    ]
