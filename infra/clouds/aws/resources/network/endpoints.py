"""Ways from the VPC to services of AWS that do not cross the internet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_aws import ec2

from infra.clouds.aws.plan.model import EndpointPlan


@dataclass(frozen=True, kw_only=True)
class EndpointsArgs:
    """What the endpoints need. subnets, route_tables, security_groups: ids by the plan's names."""

    plan: Sequence[EndpointPlan]
    vpc_id: Input[str]
    subnets: Mapping[str, Input[str]]
    route_tables: Mapping[str, Input[str]]
    security_groups: Mapping[str, Input[str]]


class Endpoints(ComponentResource):
    """Gateway endpoints as rows of route tables, interface endpoints as addresses with private DNS.

    gateways: ids of the former.
    """

    gateways: list[Output[str]]

    def __init__(self, name: str, args: EndpointsArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:aws:Endpoints", name, {}, opts)
        child = ResourceOptions(parent=self)
        self.gateways = []
        for plan in args.plan:
            if plan.kind == "gateway":
                gateway = ec2.VpcEndpoint(
                    f"endpoint-{plan.name}",
                    vpc_id=args.vpc_id,
                    service_name=plan.service,
                    vpc_endpoint_type="Gateway",
                    route_table_ids=[args.route_tables[subnet] for subnet in plan.subnets],
                    opts=child,
                )
                self.gateways.append(gateway.id)
            else:
                groups = () if plan.security_group is None else (plan.security_group,)
                ec2.VpcEndpoint(
                    f"endpoint-{plan.name}",
                    vpc_id=args.vpc_id,
                    service_name=plan.service,
                    vpc_endpoint_type="Interface",
                    subnet_ids=[args.subnets[subnet] for subnet in plan.subnets],
                    security_group_ids=[args.security_groups[group] for group in groups],
                    private_dns_enabled=True,
                    opts=child,
                )
        self.register_outputs({})
