"""Registries: the kinds of a table of the job file, and the builder of each.

A registry is one dict: the dataclass of each kind, and `"module:function"` of its builder. The dataclasses load no
torch; a builder's module is imported when it is called for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

Registry = Mapping[type, str]


@dataclass(frozen=True)
class OneOf:
    """The kinds that a table may have, in the annotation of their base class: `Annotated[Model, OneOf(MODELS)]`."""

    registry: Registry


def builder(registry: Registry, config: object) -> Callable[..., Any]:
    """The builder of this table's kind."""
    module, _, function = registry[type(config)].partition(":")
    return getattr(import_module(module), function)
