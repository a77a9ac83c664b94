"""Launch parameters of a node, in Alibaba Cloud's three forms: instance, launch template, scaling configuration.

Sources: pulumi-alicloud 4.0.0, ecs.Instance, ecs.EcsLaunchTemplate, ess.ScalingConfiguration; ECS API, RunInstances. A
changed image reinstalls an instance's disk and changed user data reboot it (provider documentation of both arguments):
running machines ignore such changes.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulumi import Input, Output, ResourceOptions
from pulumi_alicloud import ecs, ess

from infra.clouds.alicloud.plan.capacity import Spot
from infra.clouds.alicloud.plan.eri import Eri
from infra.clouds.alicloud.plan.model import AlicloudGroupPlan
from infra.clouds.tags import LOGICAL_NAME

if TYPE_CHECKING:
    from pulumi_alicloud.ecs import InstanceNetworkInterfacesArgsDict
    from pulumi_alicloud.ess import ScalingConfigurationNetworkInterfaceArgsDict

STAYS = ResourceOptions(ignore_changes=["imageId", "userData"])
RDMA = "HighPerformance"


@dataclass(frozen=True, kw_only=True)
class LaunchArgs:
    """What a node needs beside its group's plan.

    vswitch_id: of a machine that is declared by itself. pool_id: of the capacity to start in, None for any. user_data:
    base64. tags: the stack's and the group's.
    """

    plan: AlicloudGroupPlan
    stack: str
    image_id: Input[str]
    vswitch_id: Input[str]
    group_id: Input[str]
    role_name: Input[str]
    key_id: Input[str]
    key_name: Input[str] | None
    deployment_set_id: Input[str] | None
    hpc_cluster_id: Input[str] | None
    pool_id: Input[str] | None
    tags: Mapping[str, str]
    user_data: Input[str]


def machine(name: str, args: LaunchArgs, opts: ResourceOptions) -> ecs.Instance:
    """One ECS instance. `role_name`, which the provider calls old: a role attached later comes after the first boot."""
    plan, root, spot = args.plan, args.plan.root, _spot(args.plan)
    first, second = (*plan.eris, None, None)[:2]
    return ecs.Instance(
        name,
        instance_name=f"{args.stack}-{name}",
        instance_type=plan.type,
        instance_charge_type="PostPaid",
        image_id=args.image_id,
        image_options={"login_as_non_root": True},
        vswitch_id=args.vswitch_id,
        security_groups=[args.group_id],
        role_name=args.role_name,
        key_name=args.key_name,
        system_disk_category=root.category,
        system_disk_size=root.size_gib,
        system_disk_performance_level=root.level,
        system_disk_encrypted=root.encrypted,
        system_disk_kms_key_id=args.key_id,
        http_endpoint="enabled",
        http_tokens="required",
        security_enhancement_strategy="Active",
        deployment_set_id=args.deployment_set_id,
        hpc_cluster_id=args.hpc_cluster_id,
        user_data=args.user_data,
        volume_tags=args.tags,
        tags=args.tags,
        private_pool_options_match_criteria=None if args.pool_id is None else "Target",
        private_pool_options_id=args.pool_id,
        spot_strategy=spot and spot.strategy,
        spot_duration=spot and spot.protected_hours,
        spot_price_limit=spot and spot.max_price_cny_per_hour,
        spot_interruption_behavior="Terminate" if spot else None,
        network_interface_traffic_mode=RDMA if first else None,
        network_card_index=first and first.network_card_index,
        queue_pair_number=first and first.queue_pairs,
        network_interfaces=second and _second(second, args),
        opts=ResourceOptions.merge(opts, STAYS),
    )


def template(name: str, args: LaunchArgs, opts: ResourceOptions) -> ecs.EcsLaunchTemplate:
    """A launch template, its newest version the default one. It knows no eRDMA and no private pool.

    Its `tags` are those of the machines; by its own it is found again, after a deployment that was killed.
    """
    plan, root, spot = args.plan, args.plan.root, _spot(args.plan)
    return ecs.EcsLaunchTemplate(
        name,
        launch_template_name=f"gpufleet-{args.stack}-{name}",
        instance_type=plan.type,
        instance_charge_type="PostPaid",
        image_id=args.image_id,
        image_options={"login_as_non_root": True},
        network_type="vpc",
        security_group_ids=[args.group_id],
        ram_role_name=args.role_name,
        key_pair_name=args.key_name,
        system_disk={
            "category": root.category,
            "size": root.size_gib,
            "performance_level": root.level,
            "encrypted": root.encrypted,
            "kms_key_id": args.key_id,
            "delete_with_instance": True,
        },
        http_endpoint="enabled",
        http_tokens="required",
        security_enhancement_strategy="Active",
        deployment_set_id=args.deployment_set_id,
        user_data=args.user_data,
        update_default_version_number=True,
        tags=args.tags,
        template_tags={**args.tags, LOGICAL_NAME: name},
        spot_strategy=spot and spot.strategy,
        spot_duration=spot and str(spot.protected_hours),
        spot_price_limit=spot and spot.max_price_cny_per_hour,
        opts=opts,
    )


def configuration(
    name: str, scaling_group_id: Input[str], args: LaunchArgs, opts: ResourceOptions
) -> ess.ScalingConfiguration:
    """A scaling configuration: the one that can ask for an ERI or a private pool. It cannot require IMDSv2."""
    plan, root, spot = args.plan, args.plan.root, _spot(args.plan)
    cap = spot and spot.max_price_cny_per_hour
    return ess.ScalingConfiguration(
        name,
        scaling_group_id=scaling_group_id,
        scaling_configuration_name=f"{args.stack}-{name}",
        instance_type=plan.type,
        image_id=args.image_id,
        image_options_login_as_non_root=True,
        role_name=args.role_name,
        key_name=args.key_name,
        system_disk_category=root.category,
        system_disk_size=root.size_gib,
        system_disk_performance_level=root.level,
        system_disk_encrypted=root.encrypted,
        system_disk_kms_key_id=args.key_id,
        http_endpoint="enabled",
        security_enhancement_strategy="Active",
        user_data=args.user_data,
        tags=args.tags,
        active=True,
        enable=True,
        force_delete=True,
        # Beside a primary interface no security group may stand: it has its own.
        security_group_ids=None if plan.eris else [args.group_id],
        network_interfaces=[_primary(args)] if plan.eris else None,
        spot_strategy=spot and spot.strategy,
        spot_duration=spot and spot.protected_hours,
        spot_price_limits=None if cap is None else [{"instance_type": plan.type, "price_limit": cap}],
        resource_pool_options_strategy=None if args.pool_id is None else "PrivatePoolOnly",
        resource_pool_options_private_pool_ids=None if args.pool_id is None else [args.pool_id],
        opts=opts,
    )


def _spot(plan: AlicloudGroupPlan) -> Spot | None:
    return plan.market if isinstance(plan.market, Spot) else None


def _second(eri: Eri, args: LaunchArgs) -> InstanceNetworkInterfacesArgsDict:
    """The one other interface that an instance can be given: an object, not a list."""
    declared: InstanceNetworkInterfacesArgsDict = {
        "network_interface_traffic_mode": RDMA,
        "network_card_index": eri.network_card_index,
        "vswitch_id": args.vswitch_id,
        "security_group_ids": [args.group_id],
    }
    if eri.queue_pairs is not None:
        declared["queue_pair_number"] = eri.queue_pairs
    return declared


def _primary(args: LaunchArgs) -> ScalingConfigurationNetworkInterfaceArgsDict:
    return {
        "instance_type": "Primary",
        "network_interface_traffic_mode": RDMA,
        "security_group_ids": [args.group_id],
    }


def base64_of(text: Input[str]) -> Output[str]:
    """User data as Alibaba Cloud takes it."""
    return Output.from_input(text).apply(lambda script: b64encode(script.encode()).decode())
