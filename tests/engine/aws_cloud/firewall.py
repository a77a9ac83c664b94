"""Security groups as nftables rules: what EC2 does at a machine's interface, done in front of the machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cloud_hosts.ruleset import written
from cloud_provider.store import Row, Store

from aws_cloud.kinds_ec2 import INTERFACE

RULES = {"saddr": "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
         "daddr": "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"}  # fmt: skip


def ruleset(store: Store, machine: Row) -> str:
    """The rules of a machine's groups. A peer group is the private addresses of whatever is in it now.

    Groups are stateful: an answer passes (EC2 User Guide, "Security group connection tracking"), and the metadata
    service is never filtered.
    """
    groups = set(machine.outputs["vpcSecurityGroupIds"])
    members = _members(store.of(INTERFACE))
    ingress, egress = (
        [
            line
            for row in store.of(kind)
            if row.inputs["securityGroupId"] in groups
            for line in _lines(row.inputs, side, members)
        ]
        for side, kind in RULES.items()
    )
    return written(ingress, egress)


def _members(interfaces: Sequence[Row]) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in interfaces:
        for group in row.inputs["securityGroups"]:
            found.setdefault(group, []).append(row.outputs["privateIp"])
    return {group: sorted(filter(None, addresses)) for group, addresses in found.items()}


def _lines(rule: Mapping[str, Any], side: str, members: Mapping[str, list[str]]) -> Iterator[str]:
    """None for a peer group without members, and for IPv6, which these machines have not."""
    peers = [rule["cidrIpv4"]] if rule.get("cidrIpv4") else members.get(rule.get("referencedSecurityGroupId", ""), [])
    if not peers:
        return
    peer = "" if peers == ["0.0.0.0/0"] else f"ip {side} {{ {', '.join(peers)} }} "
    if rule["ipProtocol"] == "-1":
        yield f"{peer}accept"
    else:
        yield f"{peer}{rule['ipProtocol']} dport {int(rule['fromPort'])}-{int(rule['toPort'])} accept"
