"""Rules about what runs on the nodes of EC2, and what joins them."""

from __future__ import annotations

from collections.abc import Iterator

from infra.checks.rule import Violation, rule
from infra.clouds.aws.plan.capacity import FixedSize, ManagedPool
from infra.clouds.aws.plan.model import AwsHostsPlan, AwsPlan
from infra.clouds.aws.spec.cluster import AwsSpec


@rule("zone-is-no-local-zone", AwsPlan)
def zone_is_no_local_zone(spec: AwsSpec, plan: AwsPlan) -> Iterator[Violation]:
    """It has public addresses of its own, and neither FSx nor EKS (EC2 API, AllocateAddress, NetworkBorderGroup)."""
    for i, zone in enumerate(plan.zones):
        if len(zone) > len(plan.region) + 1:
            key = "zone" if spec.zones is None else f"zones[{i}]"
            yield f"cluster.{key}", f"{zone} is a Local Zone; name a zone of the region, such as {plan.region}a"


@rule("nodes-of-a-gang-have-a-fabric", AwsPlan, level="warning")
def nodes_of_a_gang_have_a_fabric(spec: AwsSpec, plan: AwsPlan) -> Iterator[Violation]:
    """Without EFA, NCCL goes over TCP, silently and many times slower (EC2 User Guide, Elastic Fabric Adapter)."""
    for i, (group_spec, group) in enumerate(zip(spec.nodes, plan.groups, strict=True)):
        together = isinstance(group.capacity, FixedSize | ManagedPool) and group.count > 1 and group.gpu is not None
        if together and group_spec.fabric == "preferred" and group.fabric != "efa":
            message = f"{group.type} has no EFA: its GPUs speak over TCP; choose another type, or say `fabric: none`"
            yield f"cluster.nodes[{i}].type", message


@rule("fabric-joins-nodes", AwsPlan, level="warning")
def fabric_joins_nodes(spec: AwsSpec, plan: AwsPlan) -> Iterator[Violation]:
    """EFA is for traffic between instances (EC2 User Guide, Elastic Fabric Adapter)."""
    for i, (group_spec, group) in enumerate(zip(spec.nodes, plan.groups, strict=True)):
        if group_spec.fabric == "required" and group.most == 1:
            yield f"cluster.nodes[{i}].fabric", "a single node has no other to speak to; leave it out"


@rule("bandwidth-layout-has-cards", AwsPlan, level="warning")
def bandwidth_layout_has_cards(spec: AwsSpec, plan: AwsPlan) -> Iterator[Violation]:
    """More IP interfaces help only on more cards (EC2 User Guide, Maximize network bandwidth)."""
    for i, (group_spec, group) in enumerate(zip(spec.nodes, plan.groups, strict=True)):
        addressed = sum(each.interface_type == "interface" for each in group.interfaces)
        if group_spec.layout == "bandwidth" and addressed == 1:
            yield f"cluster.nodes[{i}].layout", f"{group.type} has IP traffic on one card as it is; leave it out"


@rule("a-job-has-one-group", AwsHostsPlan, level="info")
def a_job_has_one_group(_: AwsSpec, plan: AwsHostsPlan) -> Iterator[Violation]:
    """Nodes speak within their group alone, and stand close together there alone (EC2 User Guide, EFA)."""
    several = [group.name for group in plan.groups if group.gpu is not None]
    if len(several) > 1:
        names = " and ".join(several)
        yield "cluster.nodes", f"{names} do not reach each other: `gpufleet train --group` names the one of a job"
