"""A group of equal nodes: one scaling group, one auto provisioning group, or machines one by one.

Sources: ESS API, CreateScalingGroup and CreateScalingRule; ECS API, CreateAutoProvisioningGroup (an interrupted node is
ended only when asked so, and none ends with the group unless told to; numbers travel as texts).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_alicloud import ecs, ess

from infra.clouds.alicloud.plan.capacity import Assurance, Elastic, FixedSize, Machines, Mix, PrivatePool, Single, Spot
from infra.clouds.alicloud.plan.model import AlicloudGroupPlan
from infra.clouds.alicloud.resources.nodes.launch_spec import LaunchArgs, configuration, machine, template

NEWEST = "Default"  # of a launch template: nodes that start later have it, running ones keep theirs


@dataclass(frozen=True, kw_only=True)
class NodeGroupArgs:
    """What a node group needs; everything is decided already. vswitches: ids of the plan's, in its order.

    zones: of them. launch: without the sets that the group makes itself.
    """

    plan: AlicloudGroupPlan
    zones: Sequence[str]
    vswitches: Sequence[Input[str]]
    launch: LaunchArgs


class NodeGroup(ComponentResource):
    """address: the private one of a group that is a single machine; the members of others are found by their tags."""

    address: Output[str] | None

    def __init__(self, name: str, args: NodeGroupArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:alicloud:NodeGroup", name, {}, opts)
        child, plan = ResourceOptions(parent=self), args.plan
        launch = replace(
            args.launch,
            deployment_set_id=self._deployment_set(name, args),
            hpc_cluster_id=self._hpc(name, args) if plan.hpc else None,
            pool_id=self._pool(args),
        )
        self.address = None
        match plan.capacity:
            case Single():
                source = machine(f"{name}-machine", launch, child)
                self.address = source.primary_ip_address
                if plan.public_address:
                    self._entrance(name, source.id)
            case Machines(nodes=nodes):
                for number in range(1, nodes + 1):
                    machine(f"{name}-{number}", launch, child)
            case FixedSize() | Elastic() as fleet:
                self._scaling_group(name, args, fleet, launch)
            case Mix() as mix:
                self._mix(name, args, mix, launch)
        self.register_outputs({})

    def _entrance(self, name: str, machine_id: Input[str]) -> None:
        """An EIP of its own, in place of bandwidth that the machine would be born with."""
        child = ResourceOptions(parent=self)
        address = ecs.EipAddress(
            f"{name}-address",
            payment_type="PayAsYouGo",
            internet_charge_type="PayByTraffic",
            bandwidth="100",
            opts=child,
        )
        ecs.EipAssociation(
            f"{name}-addressed",
            allocation_id=address.id,
            instance_id=machine_id,
            instance_type="EcsInstance",
            opts=child,
        )

    def _hpc(self, name: str, args: NodeGroupArgs) -> Output[str]:
        """Named, as it takes no tags: else what a killed deployment left would not be found again."""
        own = f"{args.launch.stack}-{name}"
        return ecs.HpcCluster(f"{name}-hpc", name=own, description=name, opts=ResourceOptions(parent=self)).id

    def _deployment_set(self, name: str, args: NodeGroupArgs) -> Output[str] | None:
        """Named, as it takes no tags: else what a killed deployment left would not be found again."""
        strategy = args.plan.deployment.strategy
        if strategy is None:
            return None
        own, child = f"{args.launch.stack}-{name}", ResourceOptions(parent=self)
        return ecs.EcsDeploymentSet(f"{name}-deployment", deployment_set_name=own, strategy=strategy, opts=child).id

    def _pool(self, args: NodeGroupArgs) -> Input[str] | None:
        """The private pool to start in. What is bought is protected: forgotten, it would be bought once more."""
        match args.plan.market:
            case PrivatePool() as pool:
                return pool.id
            case Assurance() as bought:
                return ecs.ElasticityAssurance(
                    bought.name,
                    instance_type=args.plan.type,
                    instance_amount=args.plan.most,
                    zone_ids=list(args.zones),
                    period=bought.months,
                    period_unit="Month",
                    assurance_times="Unlimited",
                    private_pool_options_match_criteria="Target",
                    opts=ResourceOptions(parent=self, protect=True),
                ).id
            case _:
                return None

    def _scaling_group(self, name: str, args: NodeGroupArgs, fleet: FixedSize | Elastic, launch: LaunchArgs) -> None:
        child, plan = ResourceOptions(parent=self), args.plan
        least, most = (fleet.nodes, fleet.nodes) if isinstance(fleet, FixedSize) else (fleet.least, fleet.most)
        spot = plan.market if isinstance(plan.market, Spot) else None
        source = template(f"{name}-template", launch, child) if fleet.form == "template" else None
        group = ess.ScalingGroup(
            f"{name}-scaling",
            scaling_group_name=f"{launch.stack}-{name}",
            min_size=least,
            max_size=most,
            desired_capacity=most if isinstance(fleet, FixedSize) else None,
            vswitch_ids=list(args.vswitches),
            multi_az_policy="COST_OPTIMIZED" if spot else "PRIORITY",
            compensate_with_on_demand=None if spot is None else spot.fallback is not None,
            spot_instance_remedy=True if spot else None,
            health_check_type="ECS",
            removal_policies=["NewestInstance"],
            launch_template_id=source and source.id,
            launch_template_version=NEWEST if source else None,
            tags=launch.tags,
            opts=child,
        )
        if fleet.form == "configuration":
            configuration(f"{name}-configuration", group.id, launch, child)
        if isinstance(fleet, Elastic):
            ess.ScalingRule(
                f"{name}-by-gpu-load",
                scaling_group_id=group.id,
                scaling_rule_type="TargetTrackingScalingRule",
                metric_name=fleet.metric,
                target_value=fleet.gpu_load_percent,
                estimated_instance_warmup=fleet.warmup_seconds,
                opts=child,
            )

    def _mix(self, name: str, args: NodeGroupArgs, mix: Mix, launch: LaunchArgs) -> None:
        child = ResourceOptions(parent=self)
        source = template(f"{name}-template", launch, child)
        price = f"{mix.max_price_cny_per_hour:g}"
        ecs.AutoProvisioningGroup(
            f"{name}-mix",
            auto_provisioning_group_name=f"{launch.stack}-{name}",
            auto_provisioning_group_type="maintain",
            launch_template_id=source.id,
            launch_template_version="1",
            launch_template_configs=[
                {
                    "instance_type": kind,
                    "vswitch_id": vswitch,
                    "max_price": price,
                    "weighted_capacity": "1",
                    "priority": str(rank),
                }
                for rank, kind in enumerate(mix.types)
                for vswitch in args.vswitches
            ],
            total_target_capacity=str(mix.nodes),
            spot_target_capacity=str(mix.nodes),
            pay_as_you_go_target_capacity="0",
            default_target_capacity_type="Spot",
            spot_allocation_strategy="lowest-price",
            spot_instance_interruption_behavior="terminate",
            excess_capacity_termination_policy="termination",
            terminate_instances=True,
            terminate_instances_with_expiration=True,
            opts=child,
        )
