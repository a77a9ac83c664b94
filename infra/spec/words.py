"""A validation error in plain English: what is wrong, the value, the limit, and what was probably meant."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from infra.spec.nearest import hint, strays
from infra.spec.problem import Contradiction, Mistake, Place
from infra.spec.shown import shown


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
        elif isinstance(cause, Contradiction):
            yield from ((place + inner, message) for inner, message in cause.mistakes)
        else:
            yield place, _MESSAGES[item["type"]](item.get("ctx", {}), item["input"])
    for section in {**unknown, **missing}:
        for key, message in strays(unknown[section], missing[section], _keys(kind, section)):
            yield (*section, key), message


def key_path(place: Place) -> str:
    """("nodes", 1, "count") as "nodes[1].count"."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")


def _keys(kind: type[BaseModel], place: Place) -> list[str]:
    """The keys that the section at that place knows."""
    found: Any = kind
    for part in place:
        found = get_args(found)[0] if isinstance(part, int) else found.model_fields[part].annotation
        if type(None) in get_args(found):  # X | None
            found = get_args(found)[0]
    return list(found.model_fields)


def _choice(context: Mapping[str, Any], value: Any) -> str:
    options = re.findall(r"'([^']*)'", context["expected"])
    meant = hint(value, options) if isinstance(value, str) else ""
    return f"must be {context['expected']}, not {shown(value)}{meant}"


_MESSAGES: dict[str, Callable[[Mapping[str, Any], Any], str]] = {
    "model_type": lambda _, value: f"must be a mapping (key: value), not {shown(value)}",
    "tuple_type": lambda _, value: f"must be a list, not {shown(value)}",
    "string_type": lambda _, value: f"must be a text, not {shown(value)}",
    "int_type": lambda _, value: f"must be a whole number, not {shown(value)}",
    "float_type": lambda _, value: f"must be a number, not {shown(value)}",
    "finite_number": lambda _, value: f"must be a finite number, not {value}",
    "greater_than_equal": lambda context, value: f"{value} is too small; the least is {context['ge']:g}",
    "less_than_equal": lambda context, value: f"{value} is too large; the most is {context['le']:g}",
    "literal_error": _choice,
    "value_error": lambda context, _: str(context["error"]),
}
