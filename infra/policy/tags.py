"""Whatever costs money or holds data is tagged with its stack: `sweep` finds the orphans of a killed `up` by that."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from infra.policy import tables
from infra.policy.rule import Resource, Stack, stack_rule
from infra.policy.wire import mapping

STACK_TAG, NAME_TAG = "gpufleet:stack", "gpufleet:name"
MISSING = "is missing: without it nobody finds what a killed deployment left"


@stack_rule("required-tags")
def required_tags(stack: Stack) -> Iterator[tuple[Resource, str, str]]:
    """What costs money or holds data carries the stack's tags: its own, or those that its provider adds."""
    for resource in stack.of(*tables.of_every_cloud().tagged):
        provider = stack.named(resource.provider)
        tags = {**_default_tags(provider), **mapping(resource.inputs.get("tags"))}
        for tag in (STACK_TAG, NAME_TAG):
            if not tags.get(tag):
                yield resource, f"tags.{tag}", MISSING


def _default_tags(provider: Resource | None) -> Mapping[str, Any]:
    """A provider's inputs travel as JSON text."""
    if provider is None:
        return {}
    given = provider.inputs.get("defaultTags")
    return mapping(mapping(json.loads(given) if isinstance(given, str) else given).get("tags"))
