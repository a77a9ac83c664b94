"""Reads a job file: TOML with the line of every key, `--set` overrides, typed dataclasses, all mistakes at once."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from difflib import get_close_matches
from functools import cache
from itertools import accumulate
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from training.config.errors import JobError, Problem
from training.config.registry import OneOf

T = TypeVar("T")
NUMBERS = (int, float)
NAMES = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", Path: "a path"}


@dataclass(frozen=True)
class Limit:
    """What a number must obey, written beside its type: `Annotated[int, Limit(...)]`."""

    holds: Callable[[Any], bool]
    requirement: str


@dataclass(kw_only=True)
class Source:
    """A job as it was written: nested tables, the line of every key, and the mistakes found so far.

    overridden: keys that `--set` gave, or the outermost table that it made around one.
    """

    file: str
    tables: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    overridden: set[str] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)

    def complain(self, key: str, message: str) -> None:
        """Adds a mistake: at `--set` where that gave the key or a table around it, else at the line of the key, or of
        the nearest table around it."""
        around = prefixes(key)
        if self.overridden.intersection(around):
            self.problems.append(Problem("--set", None, key, message))
            return
        line = next((self.lines[name] for name in reversed(around) if name in self.lines), None)
        self.problems.append(Problem(self.file, line, key, message))

    def override(self, assignment: str, rivals: Iterable[frozenset[str]]) -> None:
        """Applies one `key=value`; a key that excludes another one replaces it."""
        key, equals, text = assignment.partition("=")
        key = key.strip()
        new = (name for name in prefixes(key) if not present(self.tables, name))
        self.overridden.add(next(new, key))
        if not equals or not key:
            self.complain(key, "write key=value, for example --set optimizer.lr=0.1")
            return
        for rival in {name for group in rivals if key in group for name in group} - {key}:
            remove(self.tables, rival)
        *path, last = key.split(".")
        table: Any = self.tables
        for name in path:
            table = table.setdefault(name, {}) if isinstance(table, dict) else None
        if isinstance(table, dict):
            table[last] = toml_value(text.strip())
        else:
            self.complain(key, "is not a table, so nothing can be set in it")


def read(path: Path) -> Source:
    """Parses the file; raises JobError where it is no TOML."""
    try:
        text = path.read_text(encoding="utf-8")
        tables = tomllib.loads(text)
    except RecursionError as error:
        raise JobError(Problem(path.name, None, "", "nests too deeply")) from error
    except OSError as error:
        raise JobError(Problem(path.name, None, "", f"cannot be read: {error.strerror}")) from error
    except UnicodeDecodeError as error:
        raise JobError(Problem(path.name, None, "", "is not UTF-8 text")) from error
    except tomllib.TOMLDecodeError as error:
        place = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)", str(error))
        line = int(place[1]) if place and place[1] else None
        raise JobError(Problem(path.name, line, "", f"is not TOML: {str(error).partition(' (at ')[0]}")) from error
    return Source(file=path.name, tables=tables, lines=key_lines(text))


def key_lines(text: str) -> dict[str, int]:
    """Line of every table and key, from 1; tomllib keeps no positions, so the text is scanned."""
    positions: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[\s*([\w.\"' -]+?)\s*\]", line):
            table = plain(header[1])
            positions.setdefault(table, number)
        elif key := re.match(r"\s*([\w.\"' -]+?)\s*=", line):
            positions.setdefault(f"{table}.{plain(key[1])}".lstrip("."), number)
    return positions


def plain(key: str) -> str:
    """A dotted key without its quotes and spaces."""
    return ".".join(part.strip().strip("\"'") for part in key.split("."))


def toml_value(text: str) -> object:
    """A TOML value, or the text itself where it is none, so that `--set name=trial` needs no quotes."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text


def prefixes(key: str) -> list[str]:
    """A dotted key behind every table around it, the outermost first."""
    return [*accumulate(key.split("."), "{}.{}".format)]


def remove(tables: dict[str, Any], key: str) -> None:
    """Takes a dotted key out of nested tables, if it is there."""
    head, dot, rest = key.partition(".")
    if dot and isinstance(tables.get(head), dict):
        remove(tables[head], rest)
    elif not dot:
        tables.pop(head, None)


def present(tables: dict[str, Any], key: str) -> bool:
    """Whether a dotted key is written."""
    head, dot, rest = key.partition(".")
    inner = tables.get(head)
    return head in tables and (not dot or (isinstance(inner, dict) and present(inner, rest)))


def fill(kind: type[T], table: object, source: Source, key: str = "") -> T | None:
    """Builds a dataclass from a table; None where something in it is wrong (the mistakes are in `source.problems`)."""
    if not isinstance(table, dict):
        source.complain(key, "must be a table")
        return None
    hints = hints_of(kind)
    known = {f.name: f for f in fields(kind)}  # pyright: ignore[reportArgumentType]
    before = len(source.problems)
    for name in table.keys() - known.keys():
        source.complain(f"{key}.{name}".lstrip("."), unknown("key", name, known))
    values: dict[str, Any] = {}
    for name, slot in known.items():
        inner = f"{key}.{name}".lstrip(".")
        if name in table:
            values[name] = convert(hints[name], table[name], source, inner)
        elif slot.default is MISSING and slot.default_factory is MISSING:
            source.complain(inner, f"is missing{choices(hints[name])}")
    if len(source.problems) > before:
        return None
    built = kind(**values)
    for name, message in getattr(built, "rules", tuple)():
        source.complain(f"{key}.{name}".lstrip("."), message)
    return built if len(source.problems) == before else None


@cache
def hints_of(kind: type) -> dict[str, Any]:
    """The types of a dataclass's fields. To work them out takes most of the time in which a job is read."""
    return get_type_hints(kind, include_extras=True)


def convert(hint: Any, value: Any, source: Source, key: str) -> Any:
    """The value as its type asks for it; complains and returns None where it is not of that type."""
    limits: tuple[Any, ...] = ()
    if get_origin(hint) is Annotated:
        hint, *rest = get_args(hint)
        limits = tuple(rest)
    if options := alternatives(hint, limits):
        if all(map(is_dataclass, options)):
            return tagged(options, value, source, key)
        literals = [literal for option in options[1:] if get_origin(option) is Literal for literal in get_args(option)]
        return value if value in literals else convert(options[0], value, source, key)
    if get_origin(hint) is tuple:
        return sequence(get_args(hint)[0], value, source, key)
    if is_dataclass(hint):
        return fill(hint, value, source, key)  # pyright: ignore[reportArgumentType]
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            source.complain(key, unknown("value", str(value), get_args(hint)))
        return value
    return scalar(hint, value, limits, source, key)


def sequence(hint: type, value: Any, source: Source, key: str) -> tuple[Any, ...]:
    """A list whose items are all of one type."""
    if not isinstance(value, list) or any(type(item) is not hint for item in value):
        source.complain(key, f"must be a list, each item {NAMES[hint]}, is {value!r}")
        return ()
    return tuple(value)


def scalar(hint: type, value: Any, limits: tuple[Limit, ...], source: Source, key: str) -> Any:
    """A number, text, truth value or path within its limits."""
    if hint is Path and isinstance(value, str) and value:
        return Path(value)
    fits = type(value) is hint or (hint is float and type(value) is int)
    if not fits:
        source.complain(key, f"must be {NAMES[hint]}, is {value!r}")
        return None
    if type(value) is float and not math.isfinite(value):
        source.complain(key, f"must be a finite number, is {value}")
        return None
    for limit in limits:
        if not limit.holds(value):
            source.complain(key, f"{limit.requirement}, is {value!r}")
    return float(value) if hint is float else value


def tagged(options: list[Any], value: Any, source: Source, key: str) -> Any:
    """One of several dataclasses, chosen by the key `kind`."""
    kinds = {kind: option for option in options for kind in kinds_of(option)}
    chosen = value.get("kind") if isinstance(value, dict) else None
    if chosen is None:
        source.complain(f"{key}.kind", f"is missing; one of {', '.join(kinds)}")
        return None
    if not isinstance(chosen, str) or chosen not in kinds:
        source.complain(f"{key}.kind", unknown("value", str(chosen), kinds))
        return None
    return fill(kinds[chosen], value, source, key)


def kinds_of(option: Any) -> Iterator[str]:
    """The values of `kind` that name this dataclass."""
    yield from get_args(hints_of(option)["kind"])


def alternatives(hint: Any, annotations: Iterable[Any] = ()) -> list[Any]:
    """The types that a value may have: those of a union, or of the registry among the annotations; none for a plain
    type."""
    if get_origin(hint) in (Union, UnionType):
        return [option for option in get_args(hint) if option is not NoneType]
    return [option for annotation in annotations if isinstance(annotation, OneOf) for option in annotation.registry]


def choices(hint: Any) -> str:
    """What a missing table could be, for the message."""
    options = alternatives(hint, get_args(hint))
    kinds = [
        kind for option in options if isinstance(option, type) and is_dataclass(option) for kind in kinds_of(option)
    ]
    return f"; its kind is one of {', '.join(kinds)}" if kinds else ""


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """Says what is unknown and what was probably meant."""
    names = list(known)
    near = get_close_matches(name, names, n=1)
    return f"unknown {what} {name!r}; " + (f"did you mean {near[0]!r}?" if near else f"one of {', '.join(names)}")
