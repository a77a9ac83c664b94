"""Which resources of a rendered plan exist in the account although the engine's state lacks them, and by which ids.

The loop is the same on every cloud; what differs are tables: of the types that take tags, and of the others, whose ids
follow from what they belong to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from ops.engine.state_repair import ExistingResource, Row


class TaggedResource(Protocol):
    """kind: `<service>/<type of resource>`. name: the logical name in its tags, empty without one."""

    @property
    def kind(self) -> str: ...
    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...


@dataclass(frozen=True)
class Adoption(ABC):
    """resources: all that carry the stack's tags. ids: by URN, of the state and of what was matched so far.

    tagged: by the engine's type, the kind of the tagged resource.
    """

    account: Any  # of the cloud
    resources: Sequence[Any]  # TaggedResource, of the cloud
    ids: dict[str, str]
    tagged: ClassVar[Mapping[str, str]]

    def existing(self, rows: Sequence[Row]) -> dict[str, ExistingResource]:
        """What exists, by URN. rows: in the order of their dependencies.

        In an account that holds nothing of the stack, no API is called.
        """
        matched: dict[str, ExistingResource] = {}
        if not (self.resources or self.ids):
            return matched
        for row in rows:
            if row["custom"] and row["urn"] not in self.ids and (resource := self._match(row)):
                matched[row["urn"]] = resource
                self.ids[row["urn"]] = resource.id
        return matched

    def _match(self, row: Row) -> ExistingResource | None:
        if (kind := self.tagged.get(row["type"])) is None:
            return self.untagged(row)
        taken = set(self.ids.values())
        same = (item for item in self.resources if (item.kind, item.name) == (kind, row["name"]))
        resource = next((item for item in same if item.id not in taken), None)
        return self.imported(row, resource) if resource else None

    @abstractmethod
    def imported(self, row: Row, resource: Any) -> ExistingResource:
        """The entry of a row whose tagged resource exists."""

    @abstractmethod
    def untagged(self, row: Row) -> ExistingResource | None:
        """The entry of a row of a type without tags; None where it does not exist."""
