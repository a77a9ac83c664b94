"""Runs the lab and says what it reached: a line for each thing, the figure, and what was seen.

    python tests/lab/reach.py [TESTS …] [--json]

TESTS: pytest's arguments; lines whose tests are not among them say `not run`. Without any, all of it runs, the bench
and the linter, too. Exit code 1 if any line is not reached.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HERE, UNIT = "tests/lab", "tests/unit"
EVERYTHING = (HERE, f"{UNIT}/drivers", f"{UNIT}/playbooks", "tests/engine/test_cloud_hosts.py")
LINT = ("ansible-lint", "--nocolor", "--offline", "--profile", "production")


@dataclass(frozen=True)
class Line:
    """What must be reached, the figure, and the tests that show it, by how their names begin."""

    what: str
    figure: str
    tests: tuple[str, ...]


LINES = (
    Line(
        "a second run of every scenario",
        "changed=0",
        (f"{HERE}/test_gpu_drill.py::test_a_second_run", f"{HERE}/test_gpu_drill.py::test_after_all"),
    ),
    Line("every scenario × damage", "one run heals", (f"{HERE}/test_gpu_drill.py::",)),
    Line("SSH cut on 4 machines, 5 rounds", "heals, then changed=0", (f"{HERE}/test_cuts.py::",)),
    Line(
        "wrong sshd and nftables settings",
        "0 lock-outs of 25",
        (f"{HERE}/test_lockouts.py::test_settings_that_lock", f"{HERE}/test_lockouts.py::test_settings_that_sshd"),
    ),
    Line("wrong tuples", "all refused", (f"{UNIT}/drivers/test_wrong_tuples.py::",)),
    Line("faults planted on a machine", "all found", (f"{HERE}/test_gpu_faults.py::",)),
    Line("faults of recorded nodes", "all found", (f"{UNIT}/playbooks/test_verify_checks.py::test_a_fault",)),
    Line("healthy recorded nodes", "none accused", (f"{UNIT}/playbooks/test_verify_checks.py::test_a_healthy",)),
    Line("packages that are not as signed", "refused", (f"{HERE}/test_gpu_packages.py::test_a_repository",)),
    Line("20 secrets in variables", "found nowhere", (f"{HERE}/test_canaries.py::",)),
    Line("self-configuration from user data", "as over SSH", ("tests/engine/test_cloud_hosts.py::",)),
    Line("the lab's other tests", "all pass", (f"{HERE}/",)),
)


@dataclass(frozen=True)
class Row:
    """A line of what was reached."""

    what: str
    figure: str
    seen: str
    reached: bool

    def __str__(self) -> str:
        return f"{self.what:<38}  {self.figure:<22}  {self.seen}{'' if self.reached else '    MISSED'}"


@dataclass(eq=False)
class Seen:
    """How many tests of each line ended how: pytest calls these methods."""

    outcomes: dict[Line, Counter[str]] = field(default_factory=lambda: {line: Counter() for line in LINES})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            line = next((each for each in LINES if report.nodeid.startswith(each.tests)), None)
            if line:
                self.outcomes[line][report.outcome] += 1

    def rows(self) -> list[Row]:
        return [
            Row(line.what, line.figure, told(seen), seen["passed"] == seen.total())
            for line, seen in self.outcomes.items()
        ]


def told(seen: Counter[str]) -> str:
    """How many of the tests passed, and what became of the others."""
    others = [f"{seen[outcome]} {outcome}" for outcome in ("failed", "skipped") if seen[outcome]]
    return ", ".join([f"{seen['passed']} of {seen.total()}", *others]) if seen else "not run"


def linted() -> Row:
    """What ansible-lint finds; its own last line."""
    ran = subprocess.run(LINT, cwd=ROOT / "playbooks", capture_output=True, text=True, check=False)
    said = (ran.stderr.strip().splitlines() or ["no findings"])[-1]
    return Row("ansible-lint, profile production", "0 findings", said, ran.returncode == 0)


def measured() -> Iterator[Row]:
    """What the bench prints."""
    ran = subprocess.run([sys.executable, "tests/bench/lab.py", "--json"], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    for what, goal, seen, reached in json.loads(ran.stdout)["rows"]:
        yield Row(what, goal, seen, reached)


def main(arguments: list[str]) -> int:
    as_json = "--json" in arguments
    tests = [argument for argument in arguments if argument != "--json"]
    seen = Seen()
    with redirect_stdout(sys.stderr):
        failed = pytest.main(["-q", "-rs", *(tests or EVERYTHING)], plugins=[seen])
    rows = seen.rows()
    if not tests:
        rows += [linted(), *measured()]
    print(json.dumps([asdict(row) for row in rows]) if as_json else "\n".join(map(str, rows)))
    return 1 if failed or not all(row.reached for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
