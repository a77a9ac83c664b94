"""Tags that a provider's default tags do not reach."""

from __future__ import annotations

from collections.abc import Iterator

from infra.clouds.aws.policy.types import GROUP, LAUNCH_TEMPLATE
from infra.policy.rule import Resource, Violation, rule
from infra.policy.tags import MISSING, NAME_TAG, STACK_TAG
from infra.policy.wire import mapping, nested

MADE_BY_TEMPLATES = ("instance", "volume")


@rule("required-group-tags", GROUP)
def required_group_tags(resource: Resource) -> Iterator[Violation]:
    """A scaling group carries the stack's tags itself: a provider's do not reach it."""
    tags = {tag.get("key"): tag.get("value") for _, tag in nested(resource.inputs, "tags")}
    for tag in (STACK_TAG, NAME_TAG):
        if not tags.get(tag):
            yield f"tags.{tag}", MISSING


@rule("tags-on-what-templates-make", LAUNCH_TEMPLATE)
def tags_on_what_templates_make(resource: Resource) -> Iterator[Violation]:
    """What EC2 starts from a template carries the stack's tags: a provider's do not reach it."""
    specified = {spec.get("resourceType"): spec for _, spec in nested(resource.inputs, "tagSpecifications")}
    for kind in MADE_BY_TEMPLATES:
        if not mapping(mapping(specified.get(kind)).get("tags")).get(STACK_TAG):
            yield "tagSpecifications", f"{STACK_TAG} is missing for {kind}: what a fleet leaves could not be found"
