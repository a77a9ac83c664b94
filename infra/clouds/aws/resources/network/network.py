"""The VPC, its subnets, and their ways out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_aws import ec2

from infra.clouds.aws.plan.model import AwsNetworkPlan, SubnetPlan
from infra.clouds.dependencies import once

ANYWHERE = "0.0.0.0/0"


@dataclass(frozen=True, kw_only=True)
class NetworkArgs:
    """What a network needs; everything is decided already."""

    plan: AwsNetworkPlan


class Network(ComponentResource):
    """A VPC. Each subnet has a route table of its own, so that an endpoint or a gateway concerns no other one.

    subnets: ids by name, known once the subnet's way out is there. route_tables: ids by the subnet's name. owner: the
    account's number, which no look-up has to ask for.
    """

    vpc_id: Output[str]
    owner: Output[str]
    subnets: Mapping[str, Output[str]]
    route_tables: Mapping[str, Output[str]]

    def __init__(self, name: str, args: NetworkArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:aws:Network", name, {}, opts)
        child, plan = ResourceOptions(parent=self), args.plan
        vpc = ec2.Vpc("vpc", cidr_block=plan.cidr, enable_dns_support=True, enable_dns_hostnames=True, opts=child)
        ec2.DefaultSecurityGroup("vpc-default-closed", vpc_id=vpc.id, ingress=[], egress=[], opts=child)
        self.vpc_id, self.owner = vpc.id, vpc.owner_id
        subnets = {subnet.name: self._subnet(subnet) for subnet in plan.subnets}
        self.route_tables = {subnet: table for subnet, (_, table, _) in subnets.items()}
        public = [subnet.name for subnet in plan.subnets if subnet.public]
        internet = ec2.InternetGateway("internet", vpc_id=vpc.id, opts=child).id if public else None
        routes = {subnet: self._route(subnet, gateway_id=internet) for subnet in public}
        gateways = {subnet: self._nat(subnet, once(subnets[subnet][0], routes[subnet])) for subnet in plan.nat}
        routes |= {
            subnet.name: self._route(subnet.name, nat_gateway_id=gateways[subnet.nat])
            for subnet in plan.subnets
            if subnet.nat is not None
        }
        self.subnets = {
            subnet: once(subnet_id, routed, *([routes[subnet]] if subnet in routes else []))
            for subnet, (subnet_id, _, routed) in subnets.items()
        }
        self.register_outputs({"vpc_id": self.vpc_id})

    def _subnet(self, plan: SubnetPlan) -> tuple[Output[str], Output[str], Output[str]]:
        """The ids of the subnet, of its route table, and of what joins the two."""
        child = ResourceOptions(parent=self)
        subnet = ec2.Subnet(
            plan.name,
            vpc_id=self.vpc_id,
            availability_zone=plan.zone,
            cidr_block=plan.cidr,
            map_public_ip_on_launch=False,
            opts=child,
        )
        table = ec2.RouteTable(f"{plan.name}-routes", vpc_id=self.vpc_id, opts=child)
        routed = ec2.RouteTableAssociation(
            f"{plan.name}-routed", subnet_id=subnet.id, route_table_id=table.id, opts=child
        )
        return subnet.id, table.id, routed.id

    def _nat(self, subnet: str, subnet_id: Input[str]) -> Output[str]:
        child = ResourceOptions(parent=self)
        address = ec2.Eip(f"{subnet}-nat-address", domain="vpc", opts=child)
        return ec2.NatGateway(
            f"{subnet}-nat",
            subnet_id=subnet_id,
            allocation_id=address.allocation_id,
            connectivity_type="public",
            opts=child,
        ).id

    def _route(
        self, subnet: str, *, gateway_id: Input[str] | None = None, nat_gateway_id: Input[str] | None = None
    ) -> Output[str]:
        return ec2.Route(
            f"{subnet}-out",
            route_table_id=self.route_tables[subnet],
            destination_cidr_block=ANYWHERE,
            gateway_id=gateway_id,
            nat_gateway_id=nat_gateway_id,
            opts=ResourceOptions(parent=self),
        ).id
