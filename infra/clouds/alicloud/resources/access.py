"""Who may log in and who may speak to whom: the key pair, the enterprise security groups and their rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_alicloud import ecs

from infra.clouds.alicloud.plan.model import AlicloudAccessPlan, AlicloudNetworkPlan
from infra.clouds.dependencies import once
from infra.plan.firewall import FirewallRule

ALL_PORTS = "-1/-1"
PROTOCOLS = {"tcp": "tcp", "-1": "all"}


@dataclass(frozen=True, kw_only=True)
class AccessArgs:
    """What access needs; everything is decided already."""

    plan: AlicloudAccessPlan
    network: AlicloudNetworkPlan
    stack: str
    vpc_id: Input[str]


class Access(ComponentResource):
    """security_groups: ids by name, known once their rules are there. key_name: of the key pair, None without one."""

    security_groups: Mapping[str, Output[str]]
    key_name: Output[str] | None

    def __init__(self, name: str, args: AccessArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:alicloud:Access", name, {}, opts)
        child, key = ResourceOptions(parent=self), args.plan.key_pair
        self.key_name = None
        if key is not None:
            self.key_name = ecs.EcsKeyPair(
                "login", key_pair_name=f"gpufleet-{args.stack}", public_key=key, opts=child
            ).key_pair_name
        groups = {
            group: ecs.SecurityGroup(
                _firewall(group),
                vpc_id=args.vpc_id,
                security_group_name=f"{args.stack}-{group}",
                security_group_type="enterprise",
                description=f"gpufleet: {group}",
                opts=child,
            ).id
            for group in args.network.security_groups
        }
        rules = [(rule.group, self._rule(rule, groups[rule.group])) for rule in args.network.rules]
        self.security_groups = {
            group: once(group_id, *(rule for owner, rule in rules if owner == group))
            for group, group_id in groups.items()
        }
        self.register_outputs({})

    def _rule(self, rule: FirewallRule, group_id: Input[str]) -> Output[str]:
        ports = ALL_PORTS if rule.port is None else f"{rule.port}/{rule.last_port or rule.port}"
        return ecs.SecurityGroupRule(
            _rule_name(rule),
            security_group_id=group_id,
            type=rule.direction,
            ip_protocol=PROTOCOLS[rule.protocol],
            port_range=ports,
            nic_type="intranet",  # the only kind of a VPC
            policy="accept",
            cidr_ip=rule.peer_cidr,
            description=rule.reason,
            opts=ResourceOptions(parent=self),
        ).id


def _firewall(group: str) -> str:
    """A resource's name without dots, which part it from its properties where people read references."""
    return f"{group.replace('.', '-')}-firewall"


def _rule_name(rule: FirewallRule) -> str:
    """Made of what the rule says, so that a new rule moves none of the others."""
    traffic = (
        "all" if rule.port is None else "-".join(map(str, filter(None, (rule.protocol, rule.port, rule.last_port))))
    )
    name = f"{rule.group}-{rule.direction}-{traffic}-{rule.peer_cidr}"
    return name.translate(str.maketrans("/:.", "---"))
