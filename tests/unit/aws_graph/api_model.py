"""AWS's own description of its API, held against what a resource declares.

Source: botocore's service models, of which AWS makes its SDKs: names, enumerations, patterns, sizes, what is required.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from botocore.loaders import Loader

Shape = Mapping[str, Any]


@dataclass(frozen=True)
class Call:
    """What a type's arguments are sent as. service and shapes: of the model; a member may stand in any of the shapes.

    renamed: from an argument's path to `Shape` or `Shape.Member`, where the API has another word or another call.
    own: paths that never reach the API.
    """

    service: str
    shapes: str
    renamed: Mapping[str, str] = field(default_factory=dict)
    own: frozenset[str] = frozenset()

    def faults(self, inputs: Mapping[str, Any]) -> Iterator[str]:
        """What the model has against a resource's inputs, each with its path."""
        for name, value in inputs.items():
            yield from self._argument(self.shapes.split(), value, name)

    def _argument(self, shapes: list[str], value: object, path: str) -> Iterator[str]:
        if path in self.own or value is None:
            return
        known = (self._member(shape, path.rpartition(".")[2]) for shape in shapes)
        name = self._renamed(path) or next(filter(None, known), None)
        if name is None:
            yield f"{path}: no such member of {', '.join(shapes)}"
        else:
            yield from self._value(name, value, path)

    def _renamed(self, path: str) -> str | None:
        shape, _, member = self.renamed.get(path, "").partition(".")
        return self._shape(shape)["members"][member]["shape"] if member else shape or None

    def _member(self, name: str, argument: str) -> str | None:
        """The shape of the member of that name; in a map of attributes, of the value of the key of that name."""
        shape = self._shape(name)
        if shape["type"] == "map":
            keys = self._shape(shape["key"]["shape"])["enum"]
            return shape["value"]["shape"] if _plain(argument) in map(_plain, keys) else None
        return next(
            (member["shape"] for key, member in shape["members"].items() if _plain(key) == _plain(argument)), None
        )

    def _value(self, name: str, value: object, path: str) -> Iterator[str]:
        """Pulumi writes a list of at most one as its item, so lists are looked through on both sides."""
        shape = self._shape(name)
        items = value if isinstance(value, list) else [value]
        if shape["type"] == "list":
            name = shape["member"]["shape"]
            shape = self._shape(name)
        for item in items:
            if isinstance(item, Mapping):
                yield from self._structure(name, item, path)
            elif shape["type"] in ("structure", "map"):
                yield f"{path}: {item!r} where the API has {name}"
            elif not (isinstance(item, str) and "${" in item):
                yield from (f"{path}: {item!r} {fault}" for fault in _refusals(shape, item))

    def _structure(self, name: str, value: Mapping[str, Any], path: str) -> Iterator[str]:
        shape = self._shape(name)
        if shape["type"] != "structure":
            return  # a map of free keys
        for argument, item in value.items():
            yield from self._argument([name], item, f"{path}.{argument}")
        renamed = (target for source, target in self.renamed.items() if source.startswith(f"{path}."))
        told = {_plain(argument) for argument in (*value, *(target.rpartition(".")[2] for target in renamed))}
        missing = [member for member in shape.get("required", ()) if _plain(member) not in told]
        yield from (f"{path}: {name} needs {member}" for member in missing)

    def _shape(self, name: str) -> Shape:
        return _shapes(self.service)[name]


@cache
def _shapes(service: str) -> Mapping[str, Shape]:
    return Loader().load_service_model(service, "service-2")["shapes"]


def _plain(name: str) -> str:
    """A name without case and number: Pulumi writes `rules` for a list that the API calls `Rule`."""
    plain = name.lower()
    return plain[:-3] + "y" if plain.endswith("ies") else plain.rstrip("s")


def _refusals(shape: Shape, value: object) -> Iterator[str]:
    if value not in shape.get("enum", [value]):
        yield f"is none of {shape['enum']}"
    if isinstance(value, str) and not _fits(shape.get("pattern", ".*"), value):
        yield f"does not fit {shape['pattern']}"
    size = len(value) if isinstance(value, str) else value
    if isinstance(size, int | float) and not shape.get("min", size) <= size <= shape.get("max", size):
        yield f"is outside {shape.get('min')} to {shape.get('max')}"


def _fits(pattern: str, text: str) -> bool:
    """A pattern in a dialect that Python does not read says nothing."""
    try:
        return re.fullmatch(pattern, text, re.DOTALL) is not None
    except re.error:
        return True
