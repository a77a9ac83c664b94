"""The VPC's flow log, into an encrypted store of the Log Service (CIS Alibaba Cloud 2.0, 3.3 and 2.23)."""

from __future__ import annotations

from dataclasses import dataclass

from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_alicloud import log, vpc

from infra.clouds.alicloud.plan.model import FlowLogPlan


@dataclass(frozen=True, kw_only=True)
class FlowLogArgs:
    """What the log needs."""

    plan: FlowLogPlan
    vpc_id: Input[str]


class FlowLog(ComponentResource):
    """The log, its project and its store. A project's name is unique in the world, as a VPC's id is."""

    def __init__(self, name: str, args: FlowLogArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:alicloud:FlowLog", name, {}, opts)
        child, plan = ResourceOptions(parent=self), args.plan
        project = log.Project(f"{name}-project", project_name=Output.concat("gpufleet-", args.vpc_id), opts=child)
        store = log.Store(
            f"{name}-store",
            project_name=project.project_name,
            logstore_name="flow",
            retention_period=plan.retention_days,
            shard_count=2,
            auto_split=True,
            max_split_shard_count=16,
            encrypt_conf={"enable": True, "encrypt_type": "default"},
            opts=child,
        )
        vpc.FlowLog(
            name,
            resource_type="VPC",
            resource_id=args.vpc_id,
            traffic_type=plan.traffic,
            aggregation_interval=str(plan.aggregation_minutes),
            project_name=project.project_name,
            log_store_name=store.logstore_name,
            opts=child,
        )
        self.register_outputs({})
