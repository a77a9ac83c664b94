"""A group of equal nodes: one launch template, its placement group, and what starts instances from it.

A group is one fleet, one scaling group or one machine, never N instances: it costs the same to plan for any size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_aws import ec2

from infra.clouds.aws.plan.capacity import Elastic, FixedSize, Single
from infra.clouds.aws.plan.model import AwsGroupPlan
from infra.clouds.aws.plan.placement import Placement
from infra.clouds.aws.resources.nodes.autoscaling import scaling_group
from infra.clouds.aws.resources.nodes.capacity_block import reservation_id
from infra.clouds.aws.resources.nodes.fleet import fleet
from infra.clouds.aws.resources.nodes.instance import machine
from infra.clouds.aws.resources.nodes.launch_template import LaunchArgs, base64_of, launch_template
from infra.clouds.tags import ENTRANCE


@dataclass(frozen=True, kw_only=True)
class NodeGroupArgs:
    """What a node group needs; everything is decided already.

    image_id: of the machine image. subnets: ids of the plan's subnets, in its order. tags: the stack's own.
    user_data: the script that a node runs when it starts, as text.
    """

    plan: AwsGroupPlan
    stack: str
    image_id: Input[str]
    subnets: Sequence[Input[str]]
    group_id: Input[str]
    profile_arn: Input[str]
    key_arn: Input[str]
    key_name: Input[str] | None
    tags: Mapping[str, str]
    user_data: Input[str]


class NodeGroup(ComponentResource):
    """address: the private one of a group that is a single machine; the members of others are found by their tags."""

    address: Output[str] | None

    def __init__(self, name: str, args: NodeGroupArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:aws:NodeGroup", name, {}, opts)
        child, plan = ResourceOptions(parent=self), args.plan
        tags = {"Name": f"{args.stack}-{name}", **args.tags, **plan.tags}
        if plan.public_address:
            tags[ENTRANCE] = "true"
        template = launch_template(
            f"{name}-template",
            LaunchArgs(
                plan=plan,
                image_id=args.image_id,
                subnet_id=args.subnets[0],
                group_id=args.group_id,
                profile_arn=args.profile_arn,
                key_arn=args.key_arn,
                key_name=args.key_name,
                placement_group=placement_group(f"{name}-placement", plan.placement, child),
                reservation_id=reservation_id(plan.market, child),
                tags=tags,
                user_data=base64_of(args.user_data),
            ),
            child,
        )
        self.address = None
        match plan.capacity:
            case Single():
                self.address = machine(f"{name}-machine", plan.type, template.id, tags, child).private_ip
            case FixedSize() as gang:
                fleet(f"{name}-fleet", plan, gang, template.id, args.subnets, child)
            case Elastic() as elastic:
                scaling_group(f"{name}-scaling", plan, elastic, template.id, args.subnets, tags, child)
        self.register_outputs({})


def placement_group(name: str, plan: Placement, opts: ResourceOptions) -> Input[str] | None:
    """The name of the group to start in: one that exists, one of our own, or none."""
    if plan.strategy is None:
        return None
    if plan.existing_arn is not None:
        return plan.existing_arn.rpartition("/")[2]  # arn:aws:ec2:<region>:<account>:placement-group/<name>
    return ec2.PlacementGroup(name, strategy=plan.strategy, partition_count=plan.partitions, opts=opts).name
