"""The VPC, decided: vSwitches that hold everything, the way out, and who may speak to whom.

Sources: VPC User Guide, "Create and manage a VPC" and "vSwitches" (a /16 to a /29, four addresses of which are kept:
within what `carve` allows); NAT Gateway User Guide, "SNAT"; ECS User Guide, "Basic and advanced security groups" (an
enterprise group holds 65,536 addresses, a basic one 6,000; it names networks, never groups, and lets its own members
speak only where a rule says so).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

from infra.checks.layout import Refusals
from infra.clouds.alicloud.plan.groups import HEAD, vswitch_name
from infra.clouds.alicloud.plan.model import (
    AlicloudAccessPlan,
    AlicloudGroupPlan,
    AlicloudNetworkPlan,
    FlowLogPlan,
    VSwitchPlan,
)
from infra.clouds.alicloud.spec.cluster import AlicloudSpec
from infra.plan.cloud_model import StorePlan
from infra.plan.firewall import FirewallRule, access, both_ways, outbound
from infra.plan.subnets import Kind, Need, Subnet, carve

CLUSTER_GROUP = "ack.cluster"  # the dot keeps it apart from the groups of the stack file
STORE_PORT = 29_400  # torch elastic's own default
CLOUD_SERVICES = "100.64.0.0/10"  # metadata, DNS, time, mirrors, and OSS by its internal name
POD_ADDRESSES_PER_NODE = 20  # of ACK's Terway; pods have addresses of the VPC
POD_VSWITCH_ADDRESSES = 100  # the control plane's and the pods' vSwitch is a /25 or larger (CS API, CreateCluster)
FLOW_LOG = FlowLogPlan(traffic="All", aggregation_minutes=10, retention_days=365)  # CIS Alibaba Cloud 2.0, 2.23


class HostPeers:
    """Whom plain machines speak to beside the cloud's services: each other. See AckPeers."""

    pod_addresses: int = 0
    control_plane_addresses: int = 0

    def security_group(self, group: AlicloudGroupPlan) -> str:
        """The one that a group's nodes are in."""
        return group.security_group

    def rules(
        self, spec: AlicloudSpec, groups: Sequence[AlicloudGroupPlan], refusals: Refusals
    ) -> Iterator[FirewallRule]:
        """As they would name groups."""
        head = next((group.security_group for group in groups if group.role == "head"), None)
        workers = [group.security_group for group in groups if group.role == "worker"]
        joined = [group.security_group for group in groups if group.joined]
        yield from _out(tuple(group.security_group for group in groups))
        login = partial(access, head=head, nodes=workers, fabric=joined)
        networks = spec.access.ssh_from
        yield from refusals.decided("cluster.access.ssh_from", partial(login, ssh_from=networks), login(ssh_from=()))
        if head is not None:
            for worker in workers:
                yield from both_ways(worker, head, STORE_PORT, reason="jobs meet at the rendezvous store")


class AckPeers:
    """Whom nodes of ACK speak to beside the cloud's services: all of the cluster, which is one security group.

    pod_addresses: of a node's pods. control_plane_addresses: in each private vSwitch, none of a cluster without one.
    """

    pod_addresses: int = POD_ADDRESSES_PER_NODE
    control_plane_addresses: int = POD_VSWITCH_ADDRESSES

    def security_group(self, _: AlicloudGroupPlan) -> str:
        """The cluster's."""
        return CLUSTER_GROUP

    def rules(self, _: AlicloudSpec, __: Sequence[AlicloudGroupPlan], ___: Refusals) -> Iterator[FirewallRule]:
        """As they would name groups."""
        yield from _out((CLUSTER_GROUP,))
        yield from both_ways(CLUSTER_GROUP, CLUSTER_GROUP, None, reason="nodes and pods of the cluster")


def network_plan(
    spec: AlicloudSpec, groups: Sequence[AlicloudGroupPlan], peers: HostPeers | AckPeers, refusals: Refusals
) -> AlicloudNetworkPlan:
    """What cannot be is noted at the key it is about."""
    needs = list(_needs(spec, groups, peers))
    carved = refusals.decided("cluster.network.cidr", partial(carve, spec.network.cidr, needs), ())
    vswitches = tuple(_vswitches(spec, [subnet for subnet in carved if subnet.addresses]))
    public = [each.name for each in vswitches if each.kind == "public"]
    return AlicloudNetworkPlan(
        cidr=str(spec.network.cidr),
        gateway=None,
        vswitches=vswitches,
        nat=next(iter(public), None) if spec.network.internet == "nat" else None,
        security_groups=tuple(dict.fromkeys(peers.security_group(group) for group in groups)),
        rules=tuple(_rules(spec, groups, {each.name: each.cidr for each in vswitches}, peers, refusals)),
        flow_log=FLOW_LOG,
    )


def access_plan(spec: AlicloudSpec) -> AlicloudAccessPlan:
    keys = (spec.access.public_key,) if spec.access.public_key else ()
    return AlicloudAccessPlan(
        public_keys=keys,
        ssh_from=tuple(map(str, spec.access.ssh_from)),
        user="ecs-user",
        key_pair=keys[0] if keys else None,
        head=next((group.name for group in spec.nodes if group.name == HEAD), None),
    )


def store_plan(groups: Sequence[AlicloudGroupPlan]) -> StorePlan | None:
    """On the head node, which is never interrupted; without one, on a node of the first group that works together."""
    heads = [group.name for group in groups if group.role == "head"]
    joined = [group.name for group in groups if group.joined]
    return next((StorePlan(group=name, port=STORE_PORT) for name in [*heads, *joined]), None)


def _needs(spec: AlicloudSpec, groups: Sequence[AlicloudGroupPlan], peers: HostPeers | AckPeers) -> Iterator[Need]:
    """Every zone has its three kinds of vSwitch, in one order: what a stack adds later moves nothing that it has."""
    kinds: tuple[Kind, ...] = ("public", "private", "fabric")
    for zone, kind in product(spec.all_zones, kinds):
        name = vswitch_name(kind, zone)
        gateway = kind == "public" and zone == spec.all_zones[0] and spec.network.internet == "nat"
        yield Need(zone=zone, kind=kind, nodes=int(gateway))
        for group in groups:
            if name in group.vswitches:  # any of its zones may have to hold all of it
                addresses = max(1, len(group.eris)) + peers.pod_addresses
                yield Need(zone=zone, kind=kind, nodes=group.most, interfaces=addresses)
        if kind == "private" and peers.control_plane_addresses:
            yield Need(zone=zone, kind=kind, nodes=peers.control_plane_addresses)


def _vswitches(spec: AlicloudSpec, carved: Sequence[Subnet]) -> Iterator[VSwitchPlan]:
    for subnet in carved:
        yield VSwitchPlan(
            name=vswitch_name(subnet.kind, subnet.zone),
            zone=subnet.zone,
            kind=subnet.kind,
            cidr=subnet.cidr,
            snat=subnet.kind != "public" and spec.network.internet == "nat",
        )


def _rules(
    spec: AlicloudSpec,
    groups: Sequence[AlicloudGroupPlan],
    cidrs: dict[str, str],
    peers: HostPeers | AckPeers,
    refusals: Refusals,
) -> Iterator[FirewallRule]:
    """Each rule once. What speaks to a group speaks to the vSwitches that it stands in."""
    ranges: defaultdict[str, list[str]] = defaultdict(list)
    for group in groups:
        ranges[peers.security_group(group)] += [cidrs[name] for name in group.vswitches if name in cidrs]
    by_range = (
        replace(rule, peer_group=None, peer_cidr=cidr)
        for rule in peers.rules(spec, groups, refusals)
        for cidr in ([rule.peer_cidr] if rule.peer_group is None else ranges[rule.peer_group])
    )
    yield from dict.fromkeys(by_range)


def _out(groups: Sequence[str]) -> Iterator[FirewallRule]:
    """An enterprise group lets nothing out unasked: the web, and the cloud's own services."""
    yield from outbound(groups)
    for group in groups:
        yield FirewallRule(
            group=group,
            direction="egress",
            protocol="-1",
            port=None,
            peer_cidr=CLOUD_SERVICES,
            reason="services of the cloud",
        )
