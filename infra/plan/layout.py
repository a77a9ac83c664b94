"""What a layout refuses: each kind of refusal names the rule under which it becomes a finding."""

from __future__ import annotations

from typing import ClassVar


class LayoutError(ValueError):
    """A layout that cannot be: its message says why, and what to do."""

    rule: ClassVar[str]


class NoFabricError(LayoutError):
    """The fabric was asked of a type that has none, or whose numbers do not tell which cards have it."""

    rule = "fabric-fits-the-type"


class PlacementError(LayoutError):
    """Nodes were asked for where no placement can put them."""

    rule = "placement-is-possible"
