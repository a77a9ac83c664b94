"""What costs money or holds data says which stack made it: by these tags a sweep finds what a killed `up` left."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from infra.graph.policy.rule import Resource, Stack, Violation, rule
from infra.graph.policy.wire import BUCKET, FLEET, GROUP, INSTANCE, LAUNCH_TEMPLATE, mapping, nested

STACK_TAG, NAME_TAG = "gpufleet:stack", "gpufleet:name"
MADE_BY_TEMPLATES = ("instance", "volume")
TAGGED = (
    BUCKET,
    FLEET,
    INSTANCE,
    LAUNCH_TEMPLATE,
    "aws:cloudwatch/logGroup:LogGroup",
    "aws:ebs/volume:Volume",
    "aws:ec2/eip:Eip",
    "aws:ec2/natGateway:NatGateway",
    "aws:ec2/securityGroup:SecurityGroup",
    "aws:ec2/subnet:Subnet",
    "aws:ec2/vpc:Vpc",
    "aws:ec2/vpcEndpoint:VpcEndpoint",
    "aws:fsx/lustreFileSystem:LustreFileSystem",
    "aws:iam/role:Role",
    "aws:kms/key:Key",
    "aws:sqs/queue:Queue",
)


@rule("required-tags", *TAGGED)
def required_tags(resource: Resource, stack: Stack) -> Iterator[Violation]:
    """Its own tags and those that its provider adds to each resource."""
    provider = stack.named(resource.provider)
    tags = {**_default_tags(provider), **mapping(resource.inputs.get("tags"))}
    for tag in (STACK_TAG, NAME_TAG):
        if not tags.get(tag):
            yield f"tags.{tag}", "is missing: without it nobody finds what a killed deployment left"


@rule("required-group-tags", GROUP)
def required_group_tags(resource: Resource, stack: Stack) -> Iterator[Violation]:
    """A provider's tags do not reach a scaling group."""
    tags = {tag.get("key"): tag.get("value") for _, tag in nested(resource.inputs, "tags")}
    for tag in (STACK_TAG, NAME_TAG):
        if not tags.get(tag):
            yield f"tags.{tag}", "is missing: without it nobody finds what a killed deployment left"


@rule("tags-on-what-templates-make", LAUNCH_TEMPLATE)
def tags_on_what_templates_make(resource: Resource, stack: Stack) -> Iterator[Violation]:
    """A provider's tags do not reach what EC2 starts from a template."""
    specified = {spec.get("resourceType"): spec for _, spec in nested(resource.inputs, "tagSpecifications")}
    for made in MADE_BY_TEMPLATES:
        if not mapping(mapping(specified.get(made)).get("tags")).get(STACK_TAG):
            yield "tagSpecifications", f"{STACK_TAG} is missing for {made}: what a fleet leaves could not be found"


def _default_tags(provider: Resource | None) -> Mapping[str, Any]:
    """A provider's inputs travel as JSON text."""
    if provider is None:
        return {}
    given = provider.inputs.get("defaultTags")
    return mapping(mapping(json.loads(given) if isinstance(given, str) else given).get("tags"))
