"""What costs money or holds data says which stack made it: by these tags a sweep finds what a killed `up` left."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from infra.policy.rule import Resource, Stack, Violation, rule, stack_rule
from infra.policy.wire import (
    BLOCK_PURCHASE,
    BUCKET,
    EKS_CLUSTER,
    EKS_NODES,
    FLEET,
    GROUP,
    INSTANCE,
    KEY,
    LAUNCH_TEMPLATE,
    LUSTRE,
    VPC,
    mapping,
    nested,
)

STACK_TAG, NAME_TAG = "gpufleet:stack", "gpufleet:name"
MISSING = "is missing: without it nobody finds what a killed deployment left"
MADE_BY_TEMPLATES = ("instance", "volume")
TAGGED = (
    BLOCK_PURCHASE,
    BUCKET,
    EKS_CLUSTER,
    EKS_NODES,
    FLEET,
    INSTANCE,
    KEY,
    LAUNCH_TEMPLATE,
    LUSTRE,
    VPC,
    "aws:cloudwatch/logGroup:LogGroup",
    "aws:ebs/volume:Volume",
    "aws:ec2/eip:Eip",
    "aws:ec2/natGateway:NatGateway",
    "aws:ec2/securityGroup:SecurityGroup",
    "aws:ec2/subnet:Subnet",
    "aws:ec2/vpcEndpoint:VpcEndpoint",
    "aws:iam/role:Role",
    "aws:sqs/queue:Queue",
    "alicloud:cs/managedKubernetes:ManagedKubernetes",
    "alicloud:cs/nodePool:NodePool",
    "alicloud:ecs/ecsDisk:EcsDisk",
    "alicloud:ecs/ecsLaunchTemplate:EcsLaunchTemplate",
    "alicloud:ecs/eipAddress:EipAddress",
    "alicloud:ecs/elasticityAssurance:ElasticityAssurance",
    "alicloud:ecs/instance:Instance",
    "alicloud:ecs/securityGroup:SecurityGroup",
    "alicloud:ess/scalingConfiguration:ScalingConfiguration",
    "alicloud:ess/scalingGroup:ScalingGroup",
    "alicloud:kms/key:Key",
    "alicloud:oss/bucket:Bucket",
    "alicloud:ram/role:Role",
    "alicloud:vpc/natGateway:NatGateway",
    "alicloud:vpc/network:Network",
    "alicloud:vpc/switch:Switch",
)


@stack_rule("required-tags")
def required_tags(stack: Stack) -> Iterator[tuple[Resource, str, str]]:
    """What costs money or holds data carries the stack's tags: its own, or those that its provider adds."""
    for resource in stack.of(*TAGGED):
        provider = stack.named(resource.provider)
        tags = {**_default_tags(provider), **mapping(resource.inputs.get("tags"))}
        for tag in (STACK_TAG, NAME_TAG):
            if not tags.get(tag):
                yield resource, f"tags.{tag}", MISSING


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
    for made in MADE_BY_TEMPLATES:
        if not mapping(mapping(specified.get(made)).get("tags")).get(STACK_TAG):
            yield "tagSpecifications", f"{STACK_TAG} is missing for {made}: what a fleet leaves could not be found"


def _default_tags(provider: Resource | None) -> Mapping[str, Any]:
    """A provider's inputs travel as JSON text."""
    if provider is None:
        return {}
    given = provider.inputs.get("defaultTags")
    return mapping(mapping(json.loads(given) if isinstance(given, str) else given).get("tags"))
