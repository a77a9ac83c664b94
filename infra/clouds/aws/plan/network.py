"""The VPC, decided: subnets that hold everything, ways out, and who may speak to whom.

Sources: Amazon VPC User Guide, "NAT gateways" (one a zone) and "Gateway endpoints" (S3's costs nothing); AWS
PrivateLink Guide, "AWS services that integrate"; FSx for Lustre User Guide, "File system access control with Amazon
VPC" (ports, both ways) and "EFA-enabled file systems" (all traffic, both ways); EKS User Guide, "VPC and subnet
requirements" and "Private clusters"; amazon-eks-ami, amazon-eks-nodegroup.yaml (ports from the control plane to nodes).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

from infra.checks.layout import Refusals
from infra.clouds.aws.plan.eks import CONTROL_PLANE_GROUP
from infra.clouds.aws.plan.eks_nodes import POD_ADDRESSES_PER_NODE
from infra.clouds.aws.plan.groups import HEAD, subnet_name
from infra.clouds.aws.plan.model import (
    AwsAccessPlan,
    AwsGroupPlan,
    AwsNetworkPlan,
    EndpointPlan,
    FlowLogPlan,
    LustrePlan,
    SubnetPlan,
)
from infra.clouds.aws.plan.nics import addresses_per_node
from infra.clouds.aws.spec.cluster import AwsSpec
from infra.plan.cloud_model import StorePlan
from infra.plan.firewall import FirewallRule, access, both_ways, outbound, received
from infra.plan.subnets import Kind, Need, Subnet, carve

# A dot keeps these apart from the groups of the stack file, whose names have none.
ENDPOINTS_GROUP, LUSTRE_GROUP = "vpc.endpoints", "fsx.lustre"

# What a node without any way to the internet still needs of AWS.
INTERFACE_SERVICES = (
    "ec2",
    "sts",
    "ecr.api",
    "ecr.dkr",
    "ssm",
    "ssmmessages",
    "ec2messages",
    "logs",
    "monitoring",
    "kms",
)

EKS_SERVICES = ("eks", "eks-auth")  # of a cluster of EKS as well

CONTROL_PLANE_ADDRESSES = 16  # in each of its subnets: it takes up to six, and needs others while it is upgraded
CONTROL_PLANE_PORTS = ((443, None), (1025, 65535))  # kubelet, and webhooks, which listen where they like

LUSTRE_PORTS = ((988, None), (1018, 1023))
GIB_PER_SERVER = 1_200  # at most one file server, with an address of its own, for as much of a file system
STORE_PORT = 29_400  # torch elastic's own default

FLOW_LOG = FlowLogPlan(traffic="ALL", aggregation_seconds=600, retention_days=30)


class HostPeers:
    """Whom plain machines speak to beside the cloud's services: each other. See EksPeers."""

    security_groups: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    pod_addresses: int = 0
    control_plane_addresses: int = 0

    def rules(self, spec: AwsSpec, groups: Sequence[AwsGroupPlan], refusals: Refusals) -> Iterator[FirewallRule]:
        """People come to the head, the head to the nodes, and nodes that work together to each other."""
        head = next((group.security_group for group in groups if group.role == "head"), None)
        workers = [group.security_group for group in groups if group.role == "worker"]
        joined = [group.security_group for group in groups if group.joined]
        login = partial(access, head=head, nodes=workers, fabric=joined)
        networks = spec.access.ssh_from
        yield from refusals.decided("cluster.access.ssh_from", partial(login, ssh_from=networks), login(ssh_from=()))
        if head is not None:
            for worker in workers:
                yield from both_ways(worker, head, STORE_PORT, reason="jobs meet at the rendezvous store")


class EksPeers:
    """Whom nodes of EKS speak to beside the cloud's services: each other's pods, and the control plane.

    security_groups, services: of the cluster as well. pod_addresses: of a node's pods. control_plane_addresses: in each
    private subnet, none of a cluster without one.
    """

    security_groups: tuple[str, ...] = (CONTROL_PLANE_GROUP,)
    services: tuple[str, ...] = EKS_SERVICES
    pod_addresses: int = POD_ADDRESSES_PER_NODE
    control_plane_addresses: int = CONTROL_PLANE_ADDRESSES

    def rules(self, _: AwsSpec, groups: Sequence[AwsGroupPlan], __: Refusals) -> Iterator[FirewallRule]:
        """Pods of all nodes speak with each other, and nodes with the control plane; EFA is a part of the former."""
        nodes = [group.security_group for group in groups]
        for node, other in product(nodes, nodes):
            yield from both_ways(node, other, None, reason="pods, and the fabric")
        for node in nodes:
            yield from both_ways(node, CONTROL_PLANE_GROUP, 443, reason="API of the cluster")
            for first, last in CONTROL_PLANE_PORTS:
                yield from both_ways(CONTROL_PLANE_GROUP, node, first, last, reason="kubelets and webhooks")


def network_plan(
    spec: AwsSpec,
    groups: Sequence[AwsGroupPlan],
    file_systems: Sequence[LustrePlan],
    peers: HostPeers | EksPeers,
    refusals: Refusals,
) -> AwsNetworkPlan:
    """What cannot be is noted at the key it is about."""
    needs = list(_needs(spec, groups, file_systems, peers))
    carved = refusals.decided("cluster.network.cidr", partial(carve, spec.network.cidr, needs), ())
    subnets = _subnets(spec, [subnet for subnet in carved if subnet.addresses])
    endpoints = tuple(_endpoints(spec, subnets, peers, bool(file_systems)))
    return AwsNetworkPlan(
        cidr=str(spec.network.cidr),
        gateway=None,
        subnets=subnets,
        nat=tuple(dict.fromkeys(subnet.nat for subnet in subnets if subnet.nat)),
        endpoints=endpoints,
        security_groups=(
            *(group.security_group for group in groups),
            *([ENDPOINTS_GROUP] if any(each.kind == "interface" for each in endpoints) else []),
            *([LUSTRE_GROUP] if file_systems else []),
            *peers.security_groups,
        ),
        rules=tuple(_rules(spec, groups, file_systems, peers, refusals)),
        flow_log=FLOW_LOG,
    )


def access_plan(spec: AwsSpec, user: str) -> AwsAccessPlan:
    """user: the login name of the machine image."""
    keys = (spec.access.public_key,) if spec.access.public_key else ()
    return AwsAccessPlan(
        public_keys=keys,
        ssh_from=tuple(map(str, spec.access.ssh_from)),
        user=user,
        key_pair=keys[0] if keys else None,
        session_manager=spec.access.ssm,
        head=next((group.name for group in spec.nodes if group.name == HEAD), None),
    )


def store_plan(groups: Sequence[AwsGroupPlan]) -> StorePlan | None:
    """On the head, which no fleet takes back; without one, on a node of the first group that works together."""
    heads = [group.name for group in groups if group.role == "head"]
    joined = [group.name for group in groups if group.joined]
    return next((StorePlan(group=name, port=STORE_PORT) for name in [*heads, *joined]), None)


def _needs(
    spec: AwsSpec,
    groups: Sequence[AwsGroupPlan],
    file_systems: Sequence[LustrePlan],
    peers: HostPeers | EksPeers,
) -> Iterator[Need]:
    """Every zone has its three kinds of subnet, in one order: what a stack adds later moves nothing that it has."""
    kinds: tuple[Kind, ...] = ("public", "private", "fabric")
    standing = {name for group in groups for name in group.subnets} | {item.subnet for item in file_systems}
    for zone, kind in product(spec.all_zones, kinds):
        name = subnet_name(kind, zone)
        inner = not standing.isdisjoint({subnet_name("private", zone), subnet_name("fabric", zone)})
        yield Need(zone=zone, kind=kind, nodes=_of_the_zone(spec, kind, peers, bool(file_systems)) if inner else 0)
        for group in groups:
            if name in group.subnets:  # any of its zones may have to hold all of it
                yield Need(
                    zone=zone,
                    kind=kind,
                    nodes=group.most,
                    interfaces=addresses_per_node(group.interfaces) + peers.pod_addresses,
                )
        if kind == "private" and peers.control_plane_addresses:
            yield Need(zone=zone, kind=kind, nodes=peers.control_plane_addresses)
        servers = sum(1 + -(-item.size_gib // GIB_PER_SERVER) for item in file_systems if item.subnet == name)
        yield Need(zone=zone, kind=kind, nodes=servers)


def _of_the_zone(spec: AwsSpec, kind: Kind, peers: HostPeers | EksPeers, lustre: bool) -> int:
    """What a zone with private nodes has for their way out: a NAT gateway, or the endpoints."""
    if spec.network.internet == "nat":
        return int(kind == "public")
    return len(_services(peers, lustre)) if kind == "private" else 0


def _services(peers: HostPeers | EksPeers, lustre: bool) -> tuple[str, ...]:
    return (*INTERFACE_SERVICES, *peers.services, *(("fsx",) if lustre else ()))


def _subnets(spec: AwsSpec, carved: Sequence[Subnet]) -> tuple[SubnetPlan, ...]:
    public = [subnet.zone for subnet in carved if subnet.kind == "public"]
    return tuple(
        SubnetPlan(
            name=subnet_name(subnet.kind, subnet.zone),
            zone=subnet.zone,
            kind=subnet.kind,
            cidr=subnet.cidr,
            public=subnet.kind == "public",
            nat=(
                subnet_name("public", subnet.zone)
                if subnet.kind != "public" and spec.network.internet == "nat" and subnet.zone in public
                else None
            ),
        )
        for subnet in carved
    )


def _endpoints(
    spec: AwsSpec, subnets: Sequence[SubnetPlan], peers: HostPeers | EksPeers, lustre: bool
) -> Iterator[EndpointPlan]:
    """S3 never leaves AWS. With NAT every other service is reached through it, which costs less than ten endpoints."""
    yield EndpointPlan(
        name="s3",
        service=f"com.amazonaws.{spec.region}.s3",
        kind="gateway",
        subnets=tuple(subnet.name for subnet in subnets),
        security_group=None,
    )
    if spec.network.internet == "nat":
        return
    for service in _services(peers, lustre):
        yield EndpointPlan(
            name=service.replace(".", "-"),
            service=f"com.amazonaws.{spec.region}.{service}",
            kind="interface",
            subnets=tuple(subnet.name for subnet in subnets if subnet.kind == "private"),
            security_group=ENDPOINTS_GROUP,
        )


def _rules(
    spec: AwsSpec,
    groups: Sequence[AwsGroupPlan],
    file_systems: Sequence[LustrePlan],
    peers: HostPeers | EksPeers,
    refusals: Refusals,
) -> Iterator[FirewallRule]:
    yield from outbound([group.security_group for group in groups])
    yield from peers.rules(spec, groups, refusals)
    if spec.network.internet == "none":
        for group in groups:
            yield received(group.security_group, ENDPOINTS_GROUP, 443, reason="endpoints of the services of AWS")
    if file_systems:
        yield from _lustre(groups, efa=any(item.efa for item in file_systems))


def _lustre(groups: Sequence[AwsGroupPlan], *, efa: bool) -> Iterator[FirewallRule]:
    """Servers and clients open connections to each other, and so do servers among themselves."""
    for group in groups:
        for client, server in ((group.security_group, LUSTRE_GROUP), (LUSTRE_GROUP, group.security_group)):
            if efa and group.fabric == "efa":
                yield from both_ways(client, server, None, reason="Lustre over EFA")
                continue
            for first, last in LUSTRE_PORTS:
                yield from both_ways(client, server, first, last, reason="Lustre")
    yield from both_ways(LUSTRE_GROUP, LUSTRE_GROUP, None, reason="Lustre servers among themselves")
