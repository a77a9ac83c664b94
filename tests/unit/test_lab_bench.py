"""What the bench of the lab makes of its turns."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS / "lab"))
spec = importlib.util.spec_from_file_location("bench_lab", TESTS / "bench/lab.py")
assert spec
assert spec.loader
bench = importlib.util.module_from_spec(spec)
spec.loader.exec_module(bench)


def told(first: float, second: float, changed: float = 0) -> dict[str, dict[str, float]]:
    def run(seconds: float, changed: float) -> dict[str, float]:
        cpu = {"cpu_seconds_of_control": seconds / 10, "cpu_seconds_of_machine": seconds / 5}
        return {"seconds": seconds, **cpu, "changed": changed}

    return {"first": run(first, 34), "second": run(second, changed)}


def test_numbers_take_turns_with_as_many_machines_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = [
        (8, told(120, 70)),
        (16, told(250, 160)),
        (8, told(130, 60)),
        (8, told(110, 65)),
        (16, told(230, 170)),
        (8, told(125, 61)),
    ]
    asked: list[int] = []

    def turn(machines: int) -> dict[str, dict[str, float]]:
        asked.append(machines)
        return turns[len(asked) - 1][1]

    monkeypatch.setattr(bench, "turn", turn)

    found = bench.measured([8, 16], 2)

    assert {number: bench.least(each) for number, each in found.items()} == {8: told(110, 60), 16: told(230, 160)}
    assert asked == [number for number, _ in turns]


def test_a_change_in_one_second_run_is_not_lost_among_others() -> None:
    assert bench.least([told(120, 70), told(130, 60, changed=1)])["second"]["changed"] == 1


def test_more_than_twice_the_time_for_twice_the_machines_is_missed() -> None:
    def last(*many: float) -> tuple[str, str, str, bool]:
        few = [told(seconds, 60) for seconds in (96, 104, 90, 130)]
        return list(bench.rows({8: few, 16: [told(each, 120) for each in many]}))[-1]

    seen = "2.00 (200 s, 2 × 8 200 s; of the least single runs 2.22)"
    assert last(210, 200) == ("16 / 8 machines, first run", "≤ 2.0", seen, True)
    assert last(201, 210)[3] is False
