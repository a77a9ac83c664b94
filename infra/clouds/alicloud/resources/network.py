"""The VPC, its vSwitches, and the way out: one NAT gateway with an SNAT entry for each vSwitch of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_alicloud import ecs, vpc

from infra.clouds.alicloud.plan.model import AlicloudNetworkPlan
from infra.clouds.dependencies import once


@dataclass(frozen=True, kw_only=True)
class NetworkArgs:
    """What a network needs; everything is decided already."""

    plan: AlicloudNetworkPlan
    stack: str


class Network(ComponentResource):
    """A VPC. Its one system route table gets its default route from the gateway, so all vSwitches share one way out.

    vswitches: ids by name, known once the vSwitch's way out is there.
    """

    vpc_id: Output[str]
    vswitches: Mapping[str, Output[str]]

    def __init__(self, name: str, args: NetworkArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:alicloud:Network", name, {}, opts)
        child, plan = ResourceOptions(parent=self), args.plan
        network = vpc.Network("vpc", cidr_block=plan.cidr, vpc_name=f"gpufleet-{args.stack}", opts=child)
        self.vpc_id = network.id
        vswitches = {
            each.name: vpc.Switch(
                each.name,
                vpc_id=network.id,
                zone_id=each.zone,
                cidr_block=each.cidr,
                vswitch_name=f"{args.stack}-{each.name}",
                opts=child,
            ).id
            for each in plan.vswitches
        }
        gateways = self._ways_out(plan, vswitches) if plan.nat else {}
        self.vswitches = {each: once(vswitch_id, *gateways.get(each, ())) for each, vswitch_id in vswitches.items()}
        self.register_outputs({"vpc_id": self.vpc_id})

    def _ways_out(self, plan: AlicloudNetworkPlan, vswitches: Mapping[str, Input[str]]) -> dict[str, tuple[Input[str]]]:
        """The SNAT entries by vSwitch."""
        child = ResourceOptions(parent=self)
        gateway = vpc.NatGateway(
            "nat",
            vpc_id=self.vpc_id,
            vswitch_id=vswitches[str(plan.nat)],
            nat_type="Enhanced",
            network_type="internet",
            payment_type="PayAsYouGo",
            internet_charge_type="PayByLcu",
            opts=child,
        )
        address = ecs.EipAddress(
            "nat-address", payment_type="PayAsYouGo", internet_charge_type="PayByTraffic", bandwidth="200", opts=child
        )
        bound = ecs.EipAssociation(
            "nat-addressed", allocation_id=address.id, instance_id=gateway.id, instance_type="Nat", opts=child
        )
        return {
            each.name: (
                vpc.SnatEntry(
                    f"{each.name}-out",
                    snat_table_id=gateway.snat_table_ids,
                    source_vswitch_id=vswitches[each.name],
                    snat_ip=once(address.ip_address, bound.id),
                    opts=child,
                ).id,
            )
            for each in plan.vswitches
            if each.snat
        }
