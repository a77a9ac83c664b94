"""A CSV file as typed rows: the columns are the fields of the row's class, and every cell is checked."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import MISSING, fields
from datetime import date
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, get_args, get_type_hints

Row = TypeVar("Row")

TABLES = Path(__file__).parent / "tables"


class TableError(ValueError):
    """Tables that cannot be used; one line a mistake in `problems`."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


def read(path: Path, row: type[Row]) -> tuple[Row, ...]:
    """The rows of a table. Raises TableError with every mistake of the file.

    A field with a default may be left empty and then has it; any other cell must be filled.
    """
    with path.open(newline="", encoding="utf-8") as file:
        lines = csv.reader(file)
        header, columns = next(lines, []), [field.name for field in fields(row)]  # pyright: ignore[reportArgumentType]
        if header != columns:
            raise TableError([f"{path.name}:1 the columns must be {','.join(columns)}; found {','.join(header)}"])
        cells = _cells(row)
        problems: list[str] = []
        rows = [_row(row, cells, line, f"{path.name}:{number}", problems) for number, line in enumerate(lines, 2)]
    if problems:
        raise TableError(problems)
    return tuple(entry for entry in rows if entry is not None)


def write(path: Path, rows: Sequence[object], row: type[Any]) -> None:
    """Replaces a table by these rows, as a whole or not at all; `read` gives them back."""
    columns = [field.name for field in fields(row)]
    fresh = path.with_suffix(".new")
    with fresh.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(columns)
        lines.writerows([_written(getattr(each, column)) for column in columns] for each in rows)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def _row(
    row: type[Row], cells: dict[str, Callable[[str], Any]], line: list[str], place: str, problems: list[str]
) -> Row | None:
    if len(line) != len(cells):
        problems.append(f"{place} has {len(line)} cells, the header {len(cells)}")
        return None
    values: dict[str, Any] = {}
    for (name, cell), text in zip(cells.items(), line, strict=True):
        try:
            values[name] = cell(text)
        except ValueError as problem:
            problems.append(f"{place} {name}: {problem}")
    return row(**values) if len(values) == len(cells) else None


def _written(value: Any) -> str:
    """A value as the text of its cell."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ";".join(value)
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _cells(row: type[Any]) -> dict[str, Callable[[str], Any]]:
    """How the text of each column becomes a value."""
    hints = get_type_hints(row)
    return {field.name: _cell(_inner(hints[field.name]), field.default) for field in fields(row)}


def _cell(kind: Any, default: Any) -> Callable[[str], Any]:
    parse = PARSERS[kind]

    def cell(text: str) -> Any:
        if text:
            return parse(text)
        if default is MISSING:
            raise ValueError("is empty")
        return default

    return cell


def _inner(hint: Any) -> Any:
    """`int | None` holds an int: what an empty cell means is the default's matter."""
    return next(kind for kind in get_args(hint) if kind is not type(None)) if isinstance(hint, UnionType) else hint


def _text(text: str) -> str:
    if text != text.strip():
        raise ValueError(f"{text!r} has spaces around it")
    return text


def _count(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"{text!r} is no whole number")
    return int(text)


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is no number") from None
    if not math.isfinite(number) or number < 0:
        raise ValueError(f"{text!r} is no amount")
    return number


def _yes_or_no(text: str) -> bool:
    if text not in ("yes", "no"):
        raise ValueError(f"{text!r} must be yes or no")
    return text == "yes"


def _words(text: str) -> tuple[str, ...]:
    words = tuple(text.split(";"))
    if not all(words) or len(set(words)) != len(words):
        raise ValueError(f"{text!r} must be different words with ';' between them")
    return words


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is no date such as 2026-07-20") from None


PARSERS: dict[Any, Callable[[str], Any]] = {
    str: _text,
    int: _count,
    float: _number,
    bool: _yes_or_no,
    tuple[str, ...]: _words,
    date: _day,
}


def twice(keys: Iterable[Any]) -> Iterator[Any]:
    """The keys that occur again, in the order of their second coming."""
    seen: set[Any] = set()
    for key in keys:
        if key in seen:
            yield key
        seen.add(key)
