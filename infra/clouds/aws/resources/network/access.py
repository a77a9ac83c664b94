"""Who may log in and who may speak to whom: the key pair, the security groups and their rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv6Network, ip_network

from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_aws import ec2, vpc

from infra.clouds.aws.plan.model import AwsAccessPlan, AwsNetworkPlan
from infra.clouds.dependencies import once
from infra.plan.firewall import FirewallRule


@dataclass(frozen=True, kw_only=True)
class AccessArgs:
    """What access needs; everything is decided already."""

    plan: AwsAccessPlan
    network: AwsNetworkPlan
    vpc_id: Input[str]


class Access(ComponentResource):
    """Rules are resources of their own, never part of a group: the two forms overwrite each other.

    security_groups: ids by name, known once their rules are there. key_name: of the EC2 key pair, None without one.
    """

    security_groups: Mapping[str, Output[str]]
    key_name: Output[str] | None

    def __init__(self, name: str, args: AccessArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:aws:Access", name, {}, opts)
        child = ResourceOptions(parent=self)
        key = args.plan.key_pair
        self.key_name = None if key is None else ec2.KeyPair("login", public_key=key, opts=child).key_name
        groups = {
            group: ec2.SecurityGroup(
                _firewall(group), vpc_id=args.vpc_id, description=f"gpufleet: {group}", opts=child
            ).id
            for group in args.network.security_groups
        }
        rules = [(rule.group, self._rule(rule, groups)) for rule in args.network.rules]
        self.security_groups = {
            group: once(group_id, *(rule for owner, rule in rules if owner == group))
            for group, group_id in groups.items()
        }
        self.register_outputs({})

    def _rule(self, rule: FirewallRule, groups: Mapping[str, Output[str]]) -> Output[str]:
        kind = vpc.SecurityGroupIngressRule if rule.direction == "ingress" else vpc.SecurityGroupEgressRule
        peer_group, peer_cidr = rule.peer_group, rule.peer_cidr
        six = peer_cidr is not None and isinstance(ip_network(peer_cidr), IPv6Network)
        return kind(
            _rule_name(rule),
            security_group_id=groups[rule.group],
            ip_protocol=rule.protocol,
            from_port=rule.port,
            to_port=rule.port if rule.last_port is None else rule.last_port,
            referenced_security_group_id=None if peer_group is None else groups[peer_group],
            cidr_ipv4=None if six else peer_cidr,
            cidr_ipv6=peer_cidr if six else None,
            description=rule.reason,
            opts=ResourceOptions(parent=self),
        ).id


def _firewall(group: str) -> str:
    """A resource's name without dots, which part it from its properties where people read references."""
    return f"{group.replace('.', '-')}-firewall"


def _rule_name(rule: FirewallRule) -> str:
    """Made of what the rule says, so that a new rule moves none of the others."""
    ports = [port for port in (rule.port, rule.last_port) if port is not None]
    traffic = "-".join([rule.protocol, *map(str, ports)]) if ports else "all"
    name = f"{rule.group}-{rule.direction}-{traffic}-{rule.peer_group or rule.peer_cidr}"
    return name.translate(str.maketrans("/:.", "---"))
