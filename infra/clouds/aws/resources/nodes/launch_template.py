"""The EC2 launch template of a group, with its nested inputs.

Sources: EC2 API, RequestLaunchTemplateData; facts of each part stand where the plan decided it.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulumi import Input, Output, ResourceOptions
from pulumi_aws import ec2

from infra.clouds.aws.plan.capacity import CapacityBlock, ManagedPool, Single
from infra.clouds.aws.plan.model import AwsGroupPlan
from infra.clouds.aws.plan.nics import Interface

if TYPE_CHECKING:
    from pulumi_aws.ec2 import (
        LaunchTemplateBlockDeviceMappingArgsDict,
        LaunchTemplateCapacityReservationSpecificationArgsDict,
        LaunchTemplateInstanceMarketOptionsArgsDict,
        LaunchTemplateNetworkInterfaceArgsDict,
        LaunchTemplatePlacementArgsDict,
    )

NEWEST = "$Default"  # the template's newest version: nodes that start later have it, running ones keep theirs
TAGGED = ("instance", "volume", "network-interface")  # what EC2 makes from a template; provider tags do not reach it


@dataclass(frozen=True, kw_only=True)
class LaunchArgs:
    """What a launch template needs beside its group's plan.

    image_id: of the machine image. subnet_id: of a group's first subnet, where a single machine stands. reservation_id:
    of the capacity to start in, None for any. tags: the stack's and the group's. user_data: base64. EKS chooses image
    and profile by itself, and takes no template with one.
    """

    plan: AwsGroupPlan
    image_id: Input[str] | None
    subnet_id: Input[str]
    group_id: Input[str]
    profile_arn: Input[str] | None
    key_arn: Input[str]
    key_name: Input[str] | None
    placement_group: Input[str] | None
    reservation_id: Input[str] | None
    tags: Mapping[str, str]
    user_data: Input[str]


def launch_template(name: str, args: LaunchArgs, opts: ResourceOptions) -> ec2.LaunchTemplate:
    """The template, with its newest version as the default one."""
    plan = args.plan
    return ec2.LaunchTemplate(
        name,
        image_id=args.image_id,
        instance_type=plan.type,
        key_name=args.key_name,
        iam_instance_profile=None if args.profile_arn is None else {"arn": args.profile_arn},
        network_interfaces=[_interface(card, args) for card in plan.interfaces],
        block_device_mappings=[_root(args)],
        metadata_options={
            "http_endpoint": "enabled",
            "http_tokens": "required",
            "http_put_response_hop_limit": plan.metadata_hop_limit,
        },
        instance_market_options=_market(plan),
        capacity_reservation_specification=_reservation(args),
        placement=_placement(args),
        instance_initiated_shutdown_behavior=_on_shutdown(plan),
        user_data=args.user_data,
        update_default_version=True,
        tag_specifications=[{"resource_type": resource, "tags": args.tags} for resource in TAGGED],
        opts=opts,
    )


def _interface(card: Interface, args: LaunchArgs) -> LaunchTemplateNetworkInterfaceArgsDict:
    """A plain interface leaves its type out. EC2 takes no word on public addresses where there are several interfaces.

    Only a single machine's interface names its subnet: fleets and scaling groups name theirs, and the two exclude each
    other.
    """
    declared: LaunchTemplateNetworkInterfaceArgsDict = {
        "network_card_index": card.network_card_index,
        "device_index": card.device_index,
        "security_groups": [args.group_id],
        "delete_on_termination": "true",
    }
    if card.interface_type != "interface":
        declared["interface_type"] = card.interface_type
    if card.public_ip_allowed:
        declared["associate_public_ip_address"] = "true" if args.plan.public_address else "false"
    if isinstance(args.plan.capacity, Single):
        declared["subnet_id"] = args.subnet_id
    return declared


def _root(args: LaunchArgs) -> LaunchTemplateBlockDeviceMappingArgsDict:
    root = args.plan.root
    return {
        "device_name": root.device,
        "ebs": {
            "volume_type": root.volume_type,
            "volume_size": root.size_gib,
            "iops": root.iops,
            "throughput": root.mib_per_second,
            "encrypted": "true" if root.encrypted else "false",
            "kms_key_id": args.key_arn,
            "delete_on_termination": "true" if root.delete_on_termination else "false",
        },
    }


def _market(plan: AwsGroupPlan) -> LaunchTemplateInstanceMarketOptionsArgsDict | None:
    """Fleets and scaling groups buy spot by options of their own, and refuse a template that has some."""
    return {"market_type": "capacity-block"} if isinstance(plan.market, CapacityBlock) else None


def _on_shutdown(plan: AwsGroupPlan) -> str | None:
    """A node that shuts itself down is gone, not stopped and still billed; EKS decides that alone."""
    match plan.capacity:
        case Single():
            return "stop"
        case ManagedPool():
            return None
        case _:
            return "terminate"


def _reservation(args: LaunchArgs) -> LaunchTemplateCapacityReservationSpecificationArgsDict | None:
    if args.reservation_id is None:
        return None
    return {"capacity_reservation_target": {"capacity_reservation_id": args.reservation_id}}


def _placement(args: LaunchArgs) -> LaunchTemplatePlacementArgsDict | None:
    return None if args.placement_group is None else {"group_name": args.placement_group}


def dollars(price: float) -> str:
    """A price as EC2 takes it: decimal, without an exponent."""
    return f"{price:.6f}".rstrip("0").rstrip(".")


def base64_of(text: Input[str]) -> Output[str]:
    """User data as a launch template takes it."""
    return Output.from_input(text).apply(lambda script: b64encode(script.encode()).decode())
