"""What the lab keeps of what it has seen, and the table that it makes of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "lab"))

import reach
from reach import Row
from reach_record import Keeper, Record, Seen, fingerprint

DRILLS = """
import os
import pathlib
import pytest

@pytest.fixture(autouse=True)
def ran(request):
    with pathlib.Path(os.environ["RAN"]).open("a") as file:
        file.write(request.node.name.removeprefix("test_") + "\\n")

def ends(how):
    if how == "interrupted":
        raise KeyboardInterrupt
    if how == "skipped":
        pytest.skip("asked")
    assert how == "passed"

def test_one(): pass

@pytest.mark.drill
def test_two(record_property):
    record_property("pairs", 11)
    ends(os.environ["TWO"])

def test_three(record_property):
    record_property("pairs", 9)
"""


@dataclass(eq=False)
class Lab:
    """A project with three tests, of which the second ends as it is told. ran: where each writes that it runs."""

    root: Path
    ran: Path

    def run(self, *arguments: str, again: bool = False, spread: Sequence[str] = ()) -> list[str]:
        """The tests that a run ran, in their order; in this process, if not `spread`."""
        self.ran.write_text("")
        for file in self.root.glob("test_*.py"):
            sys.modules.pop(file.stem, None)
        reach.run_tests(Record.of(self.root), arguments, again=again, spread=spread)
        return self.ran.read_text().split()


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    root = tmp_path / "project"
    subprocess.run(["git", "init", "-q", root], check=True)
    (root / ".gitignore").write_text(".gpufleet/\n__pycache__/\n")
    (root / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\nmarkers =\n  drill\n  in_order\n")
    (root / "test_drills.py").write_text(DRILLS)
    monkeypatch.chdir(root)
    monkeypatch.setenv("TWO", "passed")
    monkeypatch.setenv("RAN", str(tmp_path / "ran"))
    return Lab(root, tmp_path / "ran")


def told(*tests: Seen) -> str:
    return reach.told(list(tests))


def seen(outcome: str | None = "passed", **counted: int) -> Seen:
    return Seen(file="", drill=True, outcome=outcome, seconds=60, counted=counted)


def test_a_run_goes_on_where_one_was_interrupted(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWO", "interrupted")
    assert lab.run() == ["one", "two"]
    monkeypatch.setenv("TWO", "passed")

    assert lab.run() == ["two", "three"]
    assert lab.run() == []


@pytest.mark.parametrize("ended", ["failed", "skipped"])
def test_what_failed_or_was_skipped_runs_again(lab: Lab, monkeypatch: pytest.MonkeyPatch, ended: str) -> None:
    monkeypatch.setenv("TWO", ended)
    assert lab.run() == ["one", "two", "three"]
    assert lab.run() == ["two"]


def test_what_a_test_failed_with_is_told_while_the_others_run(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TWO", "failed")

    lab.run()

    meanwhile = capfd.readouterr().out.partition("= FAILURES =")[0]
    assert "test_drills.py::test_two (call)" in meanwhile
    assert "AssertionError" in meanwhile


def test_all_runs_again_when_asked_and_an_interruption_of_that_is_gone_on_with(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.run()
    monkeypatch.setenv("TWO", "interrupted")

    assert lab.run(again=True) == ["one", "two"]
    assert lab.run("-k", "three", again=True) == ["three"]
    assert lab.run() == ["two"]


def test_files_run_side_by_side_and_all_that_they_saw_is_kept(lab: Lab) -> None:
    for name in ("test_more.py", "test_most.py"):
        (lab.root / name).write_text(DRILLS)

    ran = lab.run(spread=reach.SPREAD)

    assert sorted(ran) == sorted(3 * ["one", "two", "three"])
    kept = Record.of(lab.root).tests
    assert {(seen.outcome, seen.drill) for name, seen in kept.items() if name.endswith("two")} == {("passed", True)}
    assert [seen.outcome for seen in kept.values()] == 9 * ["passed"]
    assert lab.run(spread=reach.SPREAD) == []


def test_what_two_workers_report_in_turn_is_kept_apart(lab: Lab) -> None:
    record = Record(lab.root / ".gpufleet/lab.json", "", "", {"one": seen(None), "two": seen(None)})
    keeper = Keeper(record)
    for when in ("setup", "call", "teardown"):
        for name in record.tests:
            outcome = "failed" if (name, when) == ("two", "call") else "passed"
            keeper.pytest_runtest_logreport(pytest.TestReport(name, ("", 0, name), {}, outcome, None, when))

    assert [each.outcome for each in record.tests.values()] == ["passed", "failed"]


def test_two_runs_at_once_are_refused(tmp_path: Path) -> None:
    with reach.alone(tmp_path), pytest.raises(SystemExit, match="another run of the lab keeps what it sees"):
        reach.alone(tmp_path)
    reach.alone(tmp_path).close()


def test_other_sources_are_seen_anew(lab: Lab) -> None:
    lab.run()
    (lab.root / "new.py").write_text("")

    assert lab.run() == ["one", "two", "three"]


def test_a_file_of_tests_that_changed_is_seen_anew_alone(lab: Lab) -> None:
    more = lab.root / "test_more.py"
    more.write_text("def test_four(): pass\ndef test_five(): pass\n")
    lab.run()

    more.write_text("def test_four(): pass\n")
    kept = Record.of(lab.root).tests

    assert [name.partition("::")[0] for name in kept] == 3 * ["test_drills.py"]
    assert lab.run() == []
    assert [name for name in Record.of(lab.root).tests if "more" in name] == ["test_more.py::test_four"]


def test_another_bench_measures_anew_and_no_test_runs_for_it(lab: Lab) -> None:
    lab.run()
    record = Record.of(lab.root)
    record.rows["bench"] = [{"reached": True}]
    record.keep()
    assert Record.of(lab.root).rows == record.rows

    (lab.root / "tests/bench").mkdir(parents=True)
    (lab.root / "tests/bench/lab.py").write_text("")

    assert Record.of(lab.root).rows == {}
    assert lab.run() == []


def test_tests_that_build_on_each_other_run_all_or_none(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    (lab.root / "test_drills.py").write_text(f"{DRILLS}\npytestmark = pytest.mark.in_order\n")
    monkeypatch.setenv("TWO", "failed")
    lab.run()
    monkeypatch.setenv("TWO", "passed")

    assert lab.run() == ["one", "two", "three"]
    assert lab.run() == []


def test_a_record_has_what_a_test_took_and_counted_and_those_that_have_not_run(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWO", "interrupted")
    lab.run()
    one, two, three = Record.of(lab.root).tests.values()

    assert (one.outcome, one.drill, one.seconds > 0) == ("passed", False, True)
    assert (two.outcome, two.drill) == (None, True)
    assert three.outcome is None
    lab.run("-k", "three")
    assert list(Record.of(lab.root).tests.values())[2].counted == {"pairs": 9}


def test_pages_and_what_git_ignores_are_no_sources(lab: Lab) -> None:
    before = fingerprint(lab.root)
    for path in ("README.md", "docs/picture.svg", "training/loop.py", "tests/lab/reach.py", ".gpufleet/engine"):
        (lab.root / path).parent.mkdir(parents=True, exist_ok=True)
        (lab.root / path).write_text("x")

    assert fingerprint(lab.root) == before
    (lab.root / "pytest.ini").unlink()
    assert fingerprint(lab.root) != before


def test_a_line_says_how_much_was_seen() -> None:
    assert told() == told(seen(None)) == "not run"
    assert told(seen(), seen()) == "2 of 2 tests"
    assert told(seen(pairs=11), seen(pairs=9)) == "20 of 20 pairs; 2 of 2 tests"
    assert told(seen(pairs=11), seen("failed", pairs=9)) == "11 of 20 pairs; 1 of 2 tests, 1 failed"
    assert told(seen("skipped"), seen(None), seen()) == "1 of 3 tests, 1 skipped, 1 not run"


def test_a_line_is_missed_as_soon_as_something_of_it_was_seen_and_not_all_passed() -> None:
    assert reach.reached([]) is reach.reached([seen(None)]) is None
    assert reach.reached([seen(), seen()]) is True
    assert reach.reached([seen(), seen(None)]) is reach.reached([seen("skipped")]) is False


def test_the_share_of_make_test_is_of_the_labs_tests_that_are_no_drill(tmp_path: Path) -> None:
    short = Seen(file="", drill=False, outcome="passed", seconds=390)
    record = Record(tmp_path, "", "", {"tests/lab/a::b": short, "tests/lab/a::c": seen(), "tests/unit/a::b": short})

    assert reach.share(record) == Row("the lab's share of make test", "≤ 12 min", "6.5 min; 1 of 1 tests", True)
    record.tests["tests/lab/a::d"] = short
    assert reach.share(record).reached is False


def test_parts_that_are_no_tests_run_until_they_are_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends, ran = iter([False, True, True]), []

    def part(what: str) -> Iterator[Row]:
        ran.append(what)
        yield Row(what, "-", "seen", next(ends))

    monkeypatch.setattr(reach, "PARTS", {"bench": part})
    record = Record(tmp_path / ".gpufleet/lab.json", "", "")
    for again in (False, False, False, True):
        reach.run_parts(record, again=again)

    assert len(ran) == 3
    assert reach.table(record)[-1] == Row("bench", "-", "seen", True)


def test_the_table_has_what_the_bench_prints_and_one_line_where_it_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    print_rows = 'print(\'{"rows": [["8 machines", "≤ 0.8", "0.52", true], ["16 machines", "≤ 0.8", "0.9", false]]}\')'
    monkeypatch.setattr(reach, "MEASURE", (sys.executable, "-c", print_rows))
    assert [row.reached for row in reach.measured("bench")] == [True, False]

    monkeypatch.setattr(reach, "MEASURE", (sys.executable, "-c", "raise SystemExit('no machines')"))
    assert list(reach.measured("bench")) == [Row("bench", "-", "failed", False)]
