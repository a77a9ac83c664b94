"""What was seen of the lab, kept as it is seen: a run that was interrupted goes on where it stopped.

A record is of the sources that it was seen on, by their contents; on others it begins anew. A file of tests is a source
of its own tests alone: none of the lab's imports another. Pages are no sources: what they say of a node, `make test`
compares, too. Nor is what keeps and tells the record, nor `training/` with its tests, which change most: machines of
the lab carry a stand-in for it, and user data one bundle that nothing there runs. The bench is a source of what it
measured alone.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

BENCH = "tests/bench/lab.py"
NO_SOURCES = (
    *(":!docs", ":!*.md", ":!training", ":!tests/unit/training", ":!tests/drill"),
    *(":!tests/lab/reach*.py", ":!tests/bench"),
)
OF_THEIR_OWN = ":(exclude,glob)**/test_*.py"
OUTCOMES = ("failed", "skipped", "passed")  # a test's is the first of these that one of its phases had


@dataclass(frozen=True, kw_only=True)
class Seen:
    """How a test ended, or None; with the seconds of its fixtures, and what it counted, by name. file: what it stands
    in, by its contents."""

    file: str
    drill: bool
    outcome: str | None = None
    seconds: float = 0.0
    counted: dict[str, int] = field(default_factory=dict)


@dataclass
class Record:
    """Tests by their names, and the rows of what is no test. bench: what measured them, by its contents."""

    file: Path
    sources: str
    bench: str
    tests: dict[str, Seen] = field(default_factory=dict)
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    @classmethod
    def of(cls, root: Path) -> Record:
        """What was kept of the sources as they are."""
        file = root / ".gpufleet/lab.json"
        told = json.loads(file.read_text()) if file.exists() else {}
        record = cls(file, fingerprint(root), contents(root / BENCH))
        if told.get("sources") != record.sources:
            return record
        record.tests = {name: Seen(**seen) for name, seen in told["tests"].items()}
        record.rows = told["rows"] if told["bench"] == record.bench else {}
        for name in record.changed(root):
            del record.tests[name]
        return record

    def changed(self, root: Path) -> list[str]:
        """The tests whose files are not what they were."""
        return [name for name, seen in self.tests.items() if contents(root / name.partition("::")[0]) != seen.file]

    def holds(self, root: Path) -> bool:
        """Whether all of it is still of the sources as they are."""
        now = fingerprint(root), contents(root / BENCH)
        return (self.sources, self.bench) == now and not self.changed(root)

    def passed(self, name: str) -> bool:
        return self.tests[name].outcome == "passed"

    def keep(self) -> None:
        tests = {name: asdict(seen) for name, seen in self.tests.items()}
        self.file.parent.mkdir(exist_ok=True)
        aside = self.file.with_suffix(".new")
        kept = {"sources": self.sources, "bench": self.bench, "tests": tests, "rows": self.rows}
        aside.write_text(json.dumps(kept))
        aside.replace(self.file)


def fingerprint(root: Path) -> str:
    """Of the names and contents of all sources but the files of tests, those that git does not know yet, too."""
    known = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = [*known, "--", ".", *NO_SOURCES, OF_THEIR_OWN]
    names = subprocess.run(listing, cwd=root, capture_output=True, text=True, check=True).stdout.split("\0")
    digest = hashlib.sha256()
    for name in sorted(names):
        if (root / name).is_file():
            digest.update(f"{name}\0{contents(root / name)}\0".encode())
    return digest.hexdigest()


def contents(file: Path) -> str:
    """sha256 in hex; empty where there is no such file."""
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""


@dataclass(eq=False)
class Choice:
    """Notes which tests there are and which of them wait to be run: pytest calls it as it collects.

    again: what has passed waits, too. Tests that are marked `in_order` run all of a file, or none.
    """

    record: Record
    again: bool = False
    waiting: list[str] = field(default_factory=list)

    @pytest.hookimpl(wrapper=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Iterator[None]:
        for item in items:
            drill = item.get_closest_marker("drill") is not None
            self.record.tests.setdefault(item.nodeid, Seen(file=contents(item.path), drill=drill))
        yield  # to what else leaves tests out, as -k does
        if self.again:
            for item in items:
                self.record.tests[item.nodeid] = replace(self.record.tests[item.nodeid], outcome=None)
        files = {item.path for item in items if not self.record.passed(item.nodeid)}
        self.waiting = [
            item.nodeid
            for item in items
            if not self.record.passed(item.nodeid) or (item.get_closest_marker("in_order") and item.path in files)
        ]


@dataclass(eq=False)
class Keeper:
    """Keeps how each test ends as soon as it has: pytest calls it, of tests that run side by side in any order.

    What one failed with is told at once: the others go on for hours.
    """

    record: Record
    reports: defaultdict[str, list[pytest.TestReport]] = field(default_factory=lambda: defaultdict(list))
    terminal: pytest.TerminalReporter | None = None

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        terminal = session.config.pluginmanager.getplugin("terminalreporter")
        assert isinstance(terminal, pytest.TerminalReporter)
        self.terminal = terminal

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.reports[report.nodeid].append(report)
        if report.failed and self.terminal:
            self.terminal.write_line(f"\n{report.nodeid} ({report.when})\n{report.longreprtext}")
        if report.when == "teardown":
            phases = self.reports.pop(report.nodeid)
            outcomes = {each.outcome for each in phases}
            self.record.tests[report.nodeid] = replace(
                self.record.tests[report.nodeid],
                outcome=next(outcome for outcome in OUTCOMES if outcome in outcomes),
                seconds=sum(each.duration for each in phases),
                counted={name: int(str(count)) for name, count in report.user_properties},
            )
            self.record.keep()
