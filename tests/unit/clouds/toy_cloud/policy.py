"""Policy rules on rendered boxes."""

from __future__ import annotations

from collections.abc import Iterator

from infra.policy.rule import Resource, Violation, rule
from infra.policy.wire import true


@rule("boxes-have-lids", "toy:index:Box")
def boxes_have_lids(resource: Resource) -> Iterator[Violation]:
    """A box without a lid gathers dust."""
    if not true(resource.inputs.get("lid")):
        yield "lid", "must be true"
