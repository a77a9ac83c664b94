"""What is wrong with a stack file, one line a mistake."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from infra.printable import escaped


@dataclass(frozen=True)
class Problem:
    """One mistake. line counts from 1, 0 where there is no such file; key is "" where no key is meant."""

    file: str
    line: int
    key: str
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return escaped(f"{place} {self.key}: {self.message}" if self.key else f"{place}: {self.message}")


class SpecError(Exception):
    """A stack file that cannot be used; `problems` holds every mistake of the file, in the file's order."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: problem.line))
        super().__init__("\n".join(map(str, self.problems)))


Place = tuple[str | int, ...]  # the keys and list positions that lead to a value
Mistake = tuple[Place, str]


class Contradiction(ValueError):
    """Raised by validators of the spec: mistakes deeper inside the value that was checked, each with its own place."""

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("; ".join(message for _, message in self.mistakes))
