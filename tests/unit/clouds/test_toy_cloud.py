"""A cloud is one folder and one row: with both it is loaded, planned, drawn, checked and held to its policy."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra import checks, policy, registry
from infra.checks import rule as check_rules
from infra.evaluate import evaluate
from infra.graph import plan_document
from infra.graph.picture import draw
from infra.plan.summary import summary_of
from infra.policy import rule as policy_rules
from infra.spec import SpecError

REPOSITORY = Path(__file__).resolve().parents[3]
FOLDER = "toy_cloud"


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The row, for as long as a test runs; nothing of the cloud stays registered."""
    before = [set(registered) for registered in (checks.every(), policy.rules())]
    monkeypatch.setitem(registry.CLOUDS, "toy", FOLDER)
    yield
    for module in [name for name in sys.modules if name.partition(".")[0] == FOLDER]:
        del sys.modules[module]
    for registered, names in zip((check_rules.RULES, policy_rules.RULES), before, strict=True):
        for name in registered.keys() - names:
            del registered[name]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    shutil.copy(REPOSITORY / "Pulumi.yaml", tmp_path)
    (tmp_path / "stacks").mkdir()
    (tmp_path / "infra").symlink_to(REPOSITORY / "infra")
    return tmp_path


def document(project: Path, cluster: str) -> dict[str, Any]:
    write(project, cluster)
    return plan_document(project, "x")


def write(project: Path, cluster: str) -> None:
    text = f"config:\n  gpufleet:cluster: {{cloud: toy, name: box, {cluster}}}\n"
    (project / "stacks" / "Pulumi.x.yaml").write_text(text)


def rules(document: dict[str, Any]) -> list[str]:
    return [finding["rule"] for finding in document["findings"]]


def test_it_is_planned(project: Path) -> None:
    plan = document(project, "boxes: 2")

    boxes = [row["name"] for row in plan["resources"] if row["type"] == "toy:index:Box"]
    assert (boxes, plan["cost"]["hourly"], plan["outputs"]) == (["x-0", "x-1"], 1.0, {"cluster": {"stack": "x"}})
    assert rules(plan) == []


def test_its_stack_file_is_its_own(project: Path) -> None:
    write(project, "boxes: none")

    with pytest.raises(SpecError, match=r"cluster\.boxes: must be a whole number"):
        evaluate(project, "x")


def test_it_is_described_and_drawn(project: Path) -> None:
    write(project, "boxes: 2")
    plan = evaluate(project, "x").plan

    assert summary_of(plan).headline == "x · a shelf · 2 × box"
    assert "the shelf" in draw(plan)


def test_a_check_of_its_own_refuses_it(project: Path) -> None:
    plan = document(project, "boxes: 4")

    assert (rules(plan), plan["resources"]) == (["boxes-fit-the-shelf"], [])


def test_a_policy_rule_of_its_own_refuses_it(project: Path) -> None:
    assert rules(document(project, "boxes: 1, lids: false")) == ["boxes-have-lids"]


def test_without_its_row_it_is_no_cloud(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(project, "boxes: 1")
    monkeypatch.delitem(registry.CLOUDS, "toy")

    with pytest.raises(SpecError, match="not the text 'toy'"):
        evaluate(project, "x")
