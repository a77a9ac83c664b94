"""What is wrong with a stack file, in plain English: one line a mistake, with the value, the limit and a suggestion."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from infra.printable import escaped
from infra.spec.public_key import looks_private
from infra.suggest import hint, unknown_keys

LENGTH = 40


def quoted(text: str) -> str:
    """A text in quotes, shortened."""
    if looks_private(text):
        return "a private key"
    return repr(text if len(text) <= LENGTH else f"{text[: LENGTH - 1]}…")


def shown(value: Any) -> str:
    """Any value, with its kind where that could be the mistake."""
    if isinstance(value, str):
        return quoted(value) if looks_private(value) else f"the text {quoted(value)}"
    named = {type(None): "empty", dict: "a mapping", list: "a list", bool: str(value).lower()}
    return named.get(type(value), str(value))


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


class ContradictionError(ValueError):
    """Raised by validators of the spec: mistakes deeper inside the value that was checked, each with its own place."""

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("; ".join(message for _, message in self.mistakes))


KEY = "[key]"  # what pydantic says behind a key that is wrong itself
TAG = "kind"  # the key by which every union of sections is told apart


def explained(error: ValidationError, kind: type[BaseModel]) -> Iterator[Mistake]:
    """Each mistake once, with its place in the section `kind`."""
    unknown: dict[Place, list[str]] = defaultdict(list)
    missing: dict[Place, list[str]] = defaultdict(list)
    for item in error.errors(include_url=False):
        place, cause = item["loc"], item.get("ctx", {}).get("error")
        if item["type"] == "extra_forbidden":
            unknown[place[:-1]].append(str(place[-1]))
        elif item["type"] == "missing":
            missing[place[:-1]].append(str(place[-1]))
        elif isinstance(cause, ContradictionError):
            yield from ((_written(kind, place)[0] + inner, message) for inner, message in cause.mistakes)
        else:
            tag = (TAG,) if item["type"] in _OF_THE_TAG else ()
            yield _written(kind, place)[0] + tag, _MESSAGES[item["type"]](item.get("ctx", {}), item["input"])
    for section in {**unknown, **missing}:
        place, model = _written(kind, section)
        for key, message in unknown_keys(unknown[section], missing[section], model.model_fields):
            yield (*place, key), message


def key_path(place: Place) -> str:
    """("nodes", 1, "count") as "nodes[1].count"."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")


def _written(kind: type[BaseModel], place: Place) -> tuple[Place, Any]:
    """The place as the file has it, and what stands there: pydantic puts a union's tag behind the union's place."""
    annotation: Any = kind
    written: list[str | int] = []
    for part in place:
        if len(members := _members(annotation)) > 1:
            annotation = next(member for member in members if part in get_args(member.model_fields[TAG].annotation))
            continue
        if part == KEY:
            break
        annotation = _inside(members[0], part)
        written.append(part)
    return tuple(written), _members(annotation)[0]


def _inside(kind: Any, part: str | int) -> Any:
    """What stands at a place of a list, of a mapping with free keys, or of a section."""
    if isinstance(part, int):
        return get_args(kind)[0]
    return get_args(kind)[1] if get_origin(kind) is dict else kind.model_fields[part].annotation


def _members(kind: Any) -> list[Any]:
    """X for X, X | None and Annotated[X, …]; each of several sections for a union of them."""
    if get_origin(kind) is Annotated:
        return _members(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return [model for member in get_args(kind) if member is not type(None) for model in _members(member)]
    return [kind]


def _choice(context: Mapping[str, Any], value: Any) -> str:
    options = re.findall(r"'([^']*)'", context["expected"])
    meant = hint(value, options) if isinstance(value, str) else ""
    return f"must be {context['expected']}, not {shown(value)}{meant}"


def _tag(context: Mapping[str, Any], value: Any) -> str:
    *others, last = re.findall(r"'[^']*'", context["expected_tags"])
    return _choice({"expected": f"{', '.join(others)} or {last}"}, value[TAG])


_OF_THE_TAG = ("union_tag_invalid", "union_tag_not_found")

_MESSAGES: dict[str, Callable[[Mapping[str, Any], Any], str]] = {
    "model_type": lambda _, value: f"must be a mapping (key: value), not {shown(value)}",
    "dict_type": lambda _, value: f"must be a mapping (key: value), not {shown(value)}",
    "model_attributes_type": lambda _, value: f"must be a mapping (key: value), not {shown(value)}",
    "tuple_type": lambda _, value: f"must be a list, not {shown(value)}",
    "string_type": lambda _, value: f"must be a text, not {shown(value)}",
    "int_type": lambda _, value: f"must be a whole number, not {shown(value)}",
    "float_type": lambda _, value: f"must be a number, not {shown(value)}",
    "bool_type": lambda _, value: f"must be true or false, not {shown(value)}",
    "finite_number": lambda _, value: f"must be a finite number, not {value}",
    "greater_than": lambda context, value: f"{value} is too small; it must be more than {context['gt']:g}",
    "greater_than_equal": lambda context, value: f"{value} is too small; the least is {context['ge']:g}",
    "less_than_equal": lambda context, value: f"{value} is too large; the most is {context['le']:g}",
    "literal_error": _choice,
    "union_tag_invalid": _tag,
    "union_tag_not_found": lambda _context, _value: "is missing",
    "value_error": lambda context, _: str(context["error"]),
}
