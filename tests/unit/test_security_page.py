"""The threat model names the tests that show it: each of them is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = ("docs/concepts/security.md", "docs/zh/concepts/security.md")
ATTACKERS = 7


def named(page: str) -> list[str]:
    return re.findall(r"`(tests/[\w/.]+)`", (REPOSITORY / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES)
def test_every_test_that_the_threat_model_names_is_there(page: str) -> None:
    missing = [test for test in named(page) if not (REPOSITORY / test).exists()]

    assert missing == []


@pytest.mark.parametrize("page", PAGES)
def test_every_row_of_an_attacker_names_a_test(page: str) -> None:
    sections = re.split(r"^## ", (REPOSITORY / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    attackers = [section for section in sections if re.match(r"\d ", section)]
    rows = [line for section in attackers for line in section.splitlines() if line.startswith("| ")]
    bare = [row for row in rows if "`tests/" not in row and not row.endswith(("| test |", "| 测试 |"))]

    assert len(attackers) == ATTACKERS
    assert bare == []


def test_both_languages_name_the_same_tests() -> None:
    english, chinese = (sorted(named(page)) for page in PAGES)

    assert english == chinese
