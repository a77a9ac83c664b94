"""Progress of a command: one line a phase, with its outcome and its time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.status import Status
from rich.text import Text

from infra.printable import one_line
from ops.clock import REAL, Clock
from ops.console.terminal import Screen


@dataclass
class Phase:
    """One phase; `note` is the text of its line, while it runs and when it is done."""

    name: str
    note: str = ""
    seconds: float = 0.0
    _status: Status | None = None

    def say(self, note: str) -> None:
        self.note = one_line(note)
        if self._status:
            self._status.update(Text(f"{self.name:<11} {self.note}"))  # no markup: brackets in a note are text


@dataclass
class Phases:
    """The phases of one command, in order; on a terminal the current one is live, elsewhere each is one plain line.

    quiet: print nothing (a command with --json prints its document instead).
    """

    console: Screen
    quiet: bool = False
    clock: Clock = REAL
    done: list[Phase] = field(default_factory=list)

    @contextmanager
    def phase(self, name: str) -> Iterator[Phase]:
        phase, began = Phase(name), self.clock.monotonic()
        live = self.console.is_terminal and not self.quiet
        if live:
            phase._status = self.console.status(f"{name:<11} ", spinner="dots")
            phase._status.start()
        try:
            yield phase
        finally:
            if phase._status:
                phase._status.stop()
        phase.seconds = self.clock.monotonic() - began
        self.done.append(phase)
        self.line(phase)

    def line(self, phase: Phase) -> None:
        if not self.quiet:
            self._print(row(phase))

    def command(self, text: str) -> None:
        """Shows the public command behind a phase, so that a person can run it by hand."""
        if not self.quiet:
            self._print(f"  $ {text}", style="dim")

    def note(self, text: str) -> None:
        """Prints a line between phases."""
        if not self.quiet:
            self._print(f"  {text}")

    def _print(self, text: str, style: str | None = None) -> None:
        self.console.print(one_line(text), style=style)

    def as_json(self) -> list[dict[str, str | float]]:
        return [{"phase": p.name, "note": p.note, "seconds": round(p.seconds, 2)} for p in self.done]


def row(phase: Phase) -> str:
    return f"  {phase.name:<11} {phase.note:<64} {phase.seconds:7.1f} s"
