"""Reading wire values: the same fact may be a boolean, a string, a number or a list, or not be known yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml


def true(value: Any) -> bool:
    """Whether a flag is surely set; EC2's launch templates spell flags as words."""
    return value is True or (isinstance(value, str) and value.lower() == "true")


def false(value: Any) -> bool:
    """Whether a flag is surely not set; an unknown is neither."""
    return value is None or value is False or (isinstance(value, str) and value.lower() in ("false", ""))


def number(value: Any) -> int | None:
    """A whole number, also as text; None for what is no number, or not known."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return int(value)
    return int(value) if isinstance(value, str) and value.lstrip("-").isdecimal() else None


def items(value: Any) -> list[Any]:
    """A list whatever it came as; an unknown list is one unknown item."""
    if value is None:
        return []
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]


def mapping(value: Any) -> Mapping[str, Any]:
    """A nested input; one that is missing or unknown has nothing in it, so nothing that would make it safe."""
    return value if isinstance(value, Mapping) else {}


def document(value: Any) -> Mapping[str, Any]:
    """The settings in a text of YAML or JSON; of one that cannot be read, or is not known, nothing."""
    try:
        return mapping(yaml.safe_load(value)) if isinstance(value, str) else {}
    except yaml.YAMLError:
        return {}


def nested(inputs: Mapping[str, Any], key: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The objects of a list input, each with its path."""
    for i, item in enumerate(items(inputs.get(key))):
        yield f"{key}[{i}]", mapping(item)
