"""What `gpufleet plan` tells a person, and what `--json` tells a machine."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from graph_projects import REPOSITORY, shipped
from typer.testing import CliRunner

from ops.__main__ import app
from ops.commands import plan as command
from ops.project import Project


@cache
def planned(stack: str) -> command.Planned:
    return command.plan(Project(REPOSITORY), stack)


def rows(stack: str) -> dict[str, str]:
    """The lines of the text by their first word."""
    found: dict[str, str] = {}
    for line in command.text(planned(stack)).splitlines()[2:]:
        name, _, value = line.strip().partition(" ")
        found[name] = f"{found[name]}\n{value.strip()}" if name in found else value.strip()
    return found


def test_the_head_line_says_what_hardware_there_will_be() -> None:
    head = command.text(planned("a100-prod")).splitlines()[0]

    what = "4 × p4d.24xlarge (32 × A100-SXM4-40GB, EFA 400 Gbit/s per node) + 1 × m6i.large (head)"
    assert head == f"a100-prod · aws us-east-1d · {what}"


def test_a100_prod_tells_network_cards_disks_and_doors() -> None:
    told = rows("a100-prod")

    assert told["network"].startswith("10.40.0.0/16 · 1 zone · fabric 10.40.2.0/24 · public 10.40.0.0/24 · ")
    assert told["network"].endswith("S3 by gateway endpoint")
    assert "reservation cr-0123456789abcdef0" in told["trainer"]
    assert told["trainer"].endswith("5 cards (1 interface, 4 efa-only)")
    assert told["storage"] == "bucket data → /data"
    assert told["scratch"] == "trainer: 8 × 1,000 GB instance store as RAID 0 → /scratch"
    assert told["access"] == "22 from 203.0.113.0/24 to head only, as ubuntu · nodes through head"


def test_a_price_is_told_with_its_parts_and_a_month_with_its_budget() -> None:
    told = rows("a100-prod")

    assert told["price"].startswith("88.08 USD/h (head 0.10 + trainer 87.83 + the rest 0.15) · 2.74 USD/GPU-h")
    assert told["month"] == "64,296 USD (730 h) · budget 120 USD/h ok · budget 70,000 USD/month ok"


def test_a_price_that_nobody_knows_is_not_told_as_zero() -> None:
    told = rows("k8s-a100")

    assert told["price"] == "unknown: the cluster is billed elsewhere"
    assert "month" not in told


def test_spot_tells_its_bounds() -> None:
    told = rows("a100-spot")

    assert "spot up to 14.00 USD/h each, else on demand" in told["trainer"]
    assert "56.25 USD/h" in told["price"]
    assert "at most 88.08" in told["price"]
    assert "at most 64,296" in told["month"]


def test_a_door_that_is_shut_is_said_to_be() -> None:
    assert rows("b300-lab")["access"] == "no port is open · Session Manager"


def test_what_costs_nothing_has_no_month() -> None:
    assert "month" not in rows("local")


@pytest.mark.parametrize("stack", shipped())
def test_every_price_item_is_listed_with_its_source_and_the_missing_ones_by_name(stack: str) -> None:
    cost: dict[str, Any] = planned(stack).document["cost"]

    assert all(item["source"] for item in cost["items"])
    assert cost["missing"] == [item["name"] for item in cost["items"] if item["hourly"] is None]
    assert cost["hourly"] == pytest.approx(sum(item["hourly"] or 0 for item in cost["items"]))
    assert cost["monthly"] == pytest.approx(cost["hourly"] * 730)


def test_an_exceeded_budget_is_told_where_it_stands(tmp_path: Path) -> None:
    (tmp_path / "stacks").mkdir()
    (tmp_path / "Pulumi.yaml").write_text((REPOSITORY / "Pulumi.yaml").read_text())
    file = (REPOSITORY / "stacks" / "Pulumi.dev-g5.yaml").read_text()
    (tmp_path / "stacks" / "Pulumi.x.yaml").write_text(re.sub("hourly: 2", "hourly: 1", file))

    told = command.plan(Project(tmp_path), "x")

    assert told.refused
    assert "budget 1 USD/h EXCEEDED" in command.text(told)


def test_the_command_draws_and_tells_in_one_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    picture = tmp_path / "plan.svg"

    answer = CliRunner().invoke(app, ["plan", "local", "--json", "--picture", str(picture)])

    assert answer.exit_code == 0
    assert json.loads(answer.output)["stack"] == "local"
    assert ElementTree.fromstring(picture.read_text()).tag.endswith("svg")


def test_a_picture_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(command.CommandError, match="No such file or directory"):
        command.draw(planned("local"), tmp_path / "nowhere" / "plan.svg")
