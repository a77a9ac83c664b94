"""What a layout refuses: each kind of refusal names the rule under which it becomes a finding."""

from __future__ import annotations

from typing import ClassVar


class LayoutError(ValueError):
    """A layout that cannot be: its message says why, and what to do."""

    rule: ClassVar[str]


class NoFabricError(LayoutError):
    """The fabric is required of a type that has none, or whose fabric cards are unknown."""

    rule = "fabric-fits-the-type"


class PlacementError(LayoutError):
    """The requested nodes have no possible placement."""

    rule = "placement-is-possible"
