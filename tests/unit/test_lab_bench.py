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


def test_numbers_take_turns_and_the_least_of_each_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = [(8, told(120, 70)), (16, told(250, 160)), (8, told(130, 60)), (16, told(230, 170))]
    asked: list[int] = []

    def turn(machines: int) -> dict[str, dict[str, float]]:
        asked.append(machines)
        return turns[len(asked) - 1][1]

    monkeypatch.setattr(bench, "turn", turn)

    assert bench.measured([8, 16], 2) == {8: told(120, 60), 16: told(230, 160)}
    assert asked == [number for number, _ in turns]


def test_a_change_in_one_second_run_is_not_lost_among_others() -> None:
    assert bench.least([told(120, 70), told(130, 60, changed=1)])["second"]["changed"] == 1


def test_more_than_twice_the_time_for_twice_the_machines_is_missed() -> None:
    def last(many: float) -> tuple[str, str, str, bool]:
        return list(bench.rows({8: told(100, 60), 16: told(many, 120)}))[-1]

    assert last(200) == ("16 / 8 machines, first run", "≤ 2.0", "2.00 (200 / 100 s)", True)
    assert last(201)[3] is False
