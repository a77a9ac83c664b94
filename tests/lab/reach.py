"""Runs the lab and says what it reached: a line for each thing, the figure, and what was seen.

    python tests/lab/reach.py [TESTS …] [--again] [--json]

TESTS: which, in pytest's words. Without any, all of it runs, the linter and the bench, too. As many files run side by
side as there are cores. What was seen of the sources as they are is kept: a run goes on where one stopped, what has
passed does not run again (but with --again), and the lines are of all that was seen, `not run` where that is nothing.
Exit code 1 if a line with something seen is not reached, or the run did not come to its end.
"""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

import pytest
from reach_record import BENCH, Choice, Keeper, Record, Seen

ROOT = Path(__file__).parents[2]
HERE, UNIT = "tests/lab", "tests/unit"
EVERYTHING = (HERE, f"{UNIT}/drivers", f"{UNIT}/playbooks", "tests/engine/test_cloud_hosts.py")
LINT = ("ansible-lint", "--nocolor", "--offline", "--profile", "production")
SPREAD = ("-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder")  # file beside file, in their order
LONGEST = f"{HERE}/test_gpu_drill.py"
MEASURE = (sys.executable, BENCH, "--json")
SHARE_MINUTES_MOST = 12


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
    Line("SSH cut in a first run", "heals, changed=0", (f"{HERE}/test_cuts.py::",)),
    Line(
        "wrong sshd and nftables settings",
        "0 lock-outs",
        (f"{HERE}/test_lockouts.py::test_settings_that_lock", f"{HERE}/test_lockouts.py::test_settings_that_sshd"),
    ),
    Line("wrong tuples", "all refused", (f"{UNIT}/drivers/test_wrong_tuples.py::",)),
    Line("faults planted on a machine", "all found", (f"{HERE}/test_gpu_faults.py::",)),
    Line("faults of recorded nodes", "all found", (f"{UNIT}/playbooks/test_verify_checks.py::test_a_fault",)),
    Line("healthy recorded nodes", "none accused", (f"{UNIT}/playbooks/test_verify_checks.py::test_a_healthy",)),
    Line("packages that are not as signed", "refused", (f"{HERE}/test_gpu_packages.py::test_a_repository",)),
    Line("secrets in variables", "found nowhere", (f"{HERE}/test_canaries.py::",)),
    Line("self-configuration from user data", "as over SSH", ("tests/engine/test_cloud_hosts.py::",)),
    Line("GPUs cut by MIG", "all pass", (f"{HERE}/test_gpu_mig.py::",)),
    Line("EFA on H100, eRDMA on A100", "all pass", (f"{HERE}/test_gpu_fabrics.py::",)),
    Line("day two: upgrade, rollback, drain, reset", "all pass", (f"{HERE}/test_day_two.py::",)),
    Line("dnf: calls itself Rocky Linux 9", "all pass", (f"{HERE}/test_gpu_dnf.py::",)),
    Line("Debian 13, calls itself Ubuntu 22.04", "all pass", (f"{HERE}/test_gpu_distributions.py::",)),
    Line("the lab's other tests", "all pass", (f"{HERE}/",)),
)


@dataclass(frozen=True)
class Row:
    """A line of what was reached; of what nobody has seen yet it is not known."""

    what: str
    figure: str
    seen: str
    reached: bool | None

    def __str__(self) -> str:
        return f"{self.what:<40}  {self.figure:<16}  {self.seen}{'  MISSED' if self.reached is False else ''}"


def of_tests(record: Record) -> Iterator[Row]:
    """A row of each line: what its tests counted, and how many of them passed."""
    tests: dict[Line, list[Seen]] = {line: [] for line in LINES}
    for name, seen in record.tests.items():
        if line := next((each for each in LINES if name.startswith(each.tests)), None):
            tests[line].append(seen)
    for line, group in tests.items():
        yield Row(line.what, line.figure, told(group), reached(group))


def reached(tests: list[Seen]) -> bool | None:
    ended = {seen.outcome for seen in tests} or {None}
    return None if ended == {None} else ended == {"passed"}


def told(tests: list[Seen]) -> str:
    """How much of what they counted, and how many of the tests passed, and what became of the others."""
    if reached(tests) is None:
        return "not run"
    outcomes, counted, passed = Counter(seen.outcome for seen in tests), Counter[str](), Counter[str]()
    for seen in tests:
        counted.update(seen.counted)
        passed.update(seen.counted if seen.outcome == "passed" else {})
    numbers = [f"{passed[what]} of {count} {what}; " for what, count in counted.items()]
    others = [
        f", {count} {outcome or 'not run'}" for outcome in ("failed", "skipped", None) if (count := outcomes[outcome])
    ]
    return "".join([*numbers, f"{outcomes['passed']} of {len(tests)} tests", *others])


def share(record: Record) -> Row:
    """What the lab's tests of `make test` take, one after another."""
    tests = [seen for name, seen in record.tests.items() if name.startswith(f"{HERE}/") and not seen.drill]
    minutes, passed = sum(seen.seconds for seen in tests) / 60, reached(tests)
    seen = told(tests) if passed is None else f"{minutes:.1f} min; {told(tests)}"
    return Row(
        "the lab's share of make test", f"≤ {SHARE_MINUTES_MOST} min", seen, passed and minutes <= SHARE_MINUTES_MOST
    )


def linted(what: str) -> Iterator[Row]:
    """What ansible-lint finds, by its own last line."""
    ran = subprocess.run(LINT, cwd=ROOT / "playbooks", capture_output=True, text=True, check=False)
    said = (ran.stderr.strip().splitlines() or ["no findings"])[-1].partition(" in ")[0]
    yield Row(what, "0 findings", said, ran.returncode == 0)


def measured(what: str) -> Iterator[Row]:
    """What the bench prints."""
    ran = subprocess.run(MEASURE, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if ran.returncode:
        yield Row(what, "-", "failed", False)
        return
    for row in json.loads(ran.stdout)["rows"]:
        yield Row(*row)


PARTS: dict[str, Callable[[str], Iterator[Row]]] = {
    "ansible-lint, profile production": linted,
    "time of 8 and 16 machines": measured,  # last: nothing may run beside it
}


def run_tests(record: Record, arguments: Sequence[str], *, again: bool, spread: Sequence[str] = SPREAD) -> int:
    """Those that wait, the longest file first and others beside it; returns pytest's exit code."""
    choice = Choice(record, again)
    code = pytest.main(["--collect-only", "-qq", *arguments], plugins=[choice])
    if code == pytest.ExitCode.OK and choice.waiting:
        ordered = sorted(choice.waiting, key=lambda name: not name.startswith(LONGEST))
        code = pytest.main(["-q", "-rs", *spread, *ordered], plugins=[Keeper(record)])
    return code


def run_parts(record: Record, *, again: bool) -> None:
    """What is no test; like a test, not again if it was reached."""
    for what, part in PARTS.items():
        if again or not all(row["reached"] for row in record.rows.get(what, [{"reached": False}])):
            record.rows[what] = [asdict(row) for row in part(what)]
            record.keep()


def table(record: Record) -> list[Row]:
    nothing = {what: [asdict(Row(what, "-", "not run", None))] for what in PARTS}
    return [
        *of_tests(record),
        share(record),
        *(Row(**row) for rows in (nothing | record.rows).values() for row in rows),
    ]


def main(arguments: list[str]) -> int:
    again, as_json = "--again" in arguments, "--json" in arguments
    tests = [argument for argument in arguments if argument not in ("--again", "--json")]
    record = Record.of(ROOT)
    with redirect_stdout(sys.stderr):
        code = run_tests(record, tests or EVERYTHING, again=again)
    try:
        if not tests and code != pytest.ExitCode.INTERRUPTED:
            run_parts(record, again=again)
    except KeyboardInterrupt:
        code = pytest.ExitCode.INTERRUPTED
    rows = table(record)
    print(json.dumps([asdict(row) for row in rows]) if as_json else "\n".join(map(str, rows)))
    if not record.holds(ROOT):
        print("the sources changed meanwhile, so this is of none: run it again", file=sys.stderr)
        return 1
    return 0 if code == pytest.ExitCode.OK and not any(row.reached is False for row in rows) else 1


def alone(root: Path) -> IO[str]:
    """A lock that lives as long as it is open: two runs at once would each forget what the other has seen."""
    path = root / ".gpufleet" / "lab.lock"
    path.parent.mkdir(exist_ok=True)
    lock = path.open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit("another run of the lab keeps what it sees in .gpufleet/lab.json: wait for its end")
    return lock


if __name__ == "__main__":
    with alone(ROOT):
        sys.exit(main(sys.argv[1:]))
