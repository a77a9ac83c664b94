"""Rules about what runs on the nodes of Alibaba Cloud, and what joins them."""

from __future__ import annotations

from collections.abc import Iterator

from infra.catalog import load
from infra.checks.rule import Violation, rule
from infra.clouds.alicloud.plan.capacity import Elastic, FixedSize, ManagedPool, Single
from infra.clouds.alicloud.plan.model import AlicloudAckPlan, AlicloudPlan
from infra.clouds.alicloud.spec.cluster import AlicloudSpec

ACK_VERSIONS = ("1.35", "1.36")  # 1.34 ended on 2026-09-30; 1.35 ends on 2027-02-28
ACK_ERDMA = ("ecs.gn8is", "ecs.ebmgn8is", "ecs.gn8v", "ecs.ebmgn8v")  # that the add-on's page names

CONFIGURATION_ROOT_GIB = 500


@rule("nodes-work-together-over-a-fabric", AlicloudPlan, level="warning")
def nodes_work_together_over_a_fabric(spec: AlicloudSpec, plan: AlicloudPlan) -> Iterator[Violation]:
    """Without eRDMA, NCCL goes over TCP, silently and many times slower (ECS User Guide, eRDMA on GPU instances)."""
    for i, (group_spec, group) in enumerate(zip(spec.nodes, plan.groups, strict=True)):
        fixed = not isinstance(group.capacity, Single | Elastic)
        if fixed and group.count > 1 and group.gpu and group_spec.fabric == "preferred" and group.fabric == "tcp":
            remedy = "set `fabric: required` for the reason, or `fabric: none`"
            message = f"no RDMA for {group.type}: NCCL falls back to TCP; {remedy}"
            yield f"cluster.nodes[{i}].fabric", message


@rule("fabric-has-two-ends", AlicloudPlan, level="warning")
def fabric_has_two_ends(spec: AlicloudSpec, plan: AlicloudPlan) -> Iterator[Violation]:
    """eRDMA is for traffic between instances (ECS User Guide, eRDMA)."""
    for i, (group_spec, group) in enumerate(zip(spec.nodes, plan.groups, strict=True)):
        if group_spec.fabric == "required" and group.most == 1:
            yield f"cluster.nodes[{i}].fabric", "a single node has no other to speak to; leave it out"


@rule("supercomputer-uses-its-fabric", AlicloudPlan, level="warning")
def supercomputer_uses_its_fabric(spec: AlicloudSpec, plan: AlicloudPlan) -> Iterator[Violation]:
    """A Super Computing Cluster's RoCE is part of its price (ECS User Guide, SCC)."""
    for i, (group_spec, group) in enumerate(zip(spec.nodes, plan.groups, strict=True)):
        if group.hpc and group_spec.fabric == "none":
            yield f"cluster.nodes[{i}].fabric", f"{group.type} is sold with its RoCE network; leave out `fabric: none`"


@rule("supercomputer-is-no-fleet", AlicloudPlan)
def supercomputer_is_no_fleet(_: AlicloudSpec, plan: AlicloudPlan) -> Iterator[Violation]:
    """SCC types need an HPC cluster id, which only single instances take (pulumi-alicloud 4.0.0; ECS API)."""
    for i, group in enumerate(plan.groups):
        if group.hpc and isinstance(group.capacity, Elastic | ManagedPool):
            what = "a node pool" if isinstance(group.capacity, ManagedPool) else "a group that follows its load"
            yield (
                f"cluster.nodes[{i}].type",
                f"{what} cannot join a Super Computing Cluster; give `count`, without `ack`",
            )


@rule("root-fits-its-configuration", AlicloudPlan)
def root_fits_its_configuration(_: AlicloudSpec, plan: AlicloudPlan) -> Iterator[Violation]:
    """A scaling configuration takes a system disk of 20 to 500 GiB, a launch template and an instance larger ones
    (terraform-provider-alicloud, resource_alicloud_ess_scaling_configuration.go, `system_disk_size`)."""
    for i, group in enumerate(plan.groups):
        capacity = group.capacity
        configured = isinstance(capacity, FixedSize | Elastic) and capacity.form == "configuration"
        if configured and group.root.size_gib > CONFIGURATION_ROOT_GIB:
            message = (
                f"a group with one eRDMA interface or out of a private pool takes at most {CONFIGURATION_ROOT_GIB}"
            )
            yield f"cluster.nodes[{i}].root.size_gib", message


@rule("uefi-type-has-a-uefi-image", AlicloudPlan, level="warning")
def uefi_type_has_a_uefi_image(spec: AlicloudSpec, plan: AlicloudPlan) -> Iterator[Violation]:
    """Some bare-metal types refuse an image that boots by BIOS (ECS API, SupportedBootModes)."""
    if spec.images.x86_64 is None:
        return  # `up` asks for an image by the type, which only answers with those that boot
    for i, group in enumerate(plan.groups):
        if load().type(group.type).boot_modes == ("uefi",):
            yield f"cluster.nodes[{i}].type", f"boots by UEFI alone: see that {spec.images.x86_64} does"


@rule("configuration-cannot-require-imdsv2", AlicloudPlan, level="warning")
def configuration_cannot_require_imdsv2(_: AlicloudSpec, plan: AlicloudPlan) -> Iterator[Violation]:
    """A scaling configuration has no `http_tokens` (pulumi-alicloud 4.0.0); the ECS API can be asked afterwards."""
    for i, group in enumerate(plan.groups):
        if isinstance(group.capacity, FixedSize | Elastic) and group.capacity.form == "configuration":
            message = "its nodes answer metadata without a token; ask `ModifyInstanceMetadataOptions` for each"
            yield f"cluster.nodes[{i}]", message


@rule("fleet-of-eris-has-no-set", AlicloudPlan, level="info")
def fleet_of_eris_has_no_set(_: AlicloudSpec, plan: AlicloudPlan) -> Iterator[Violation]:
    """A scaling configuration cannot name a deployment set, a launch template no eRDMA (pulumi-alicloud 4.0.0)."""
    for i, group in enumerate(plan.groups):
        if group.eris and isinstance(group.capacity, FixedSize | Elastic):
            yield f"cluster.nodes[{i}]", "stands wherever the zone has room: its nodes may be some hops apart"


@rule("ack-version-lives", AlicloudAckPlan)
def ack_version_lives(_: AlicloudSpec, plan: AlicloudAckPlan) -> Iterator[Violation]:
    """A version is supported for about a year (ACK User Guide, Kubernetes versions, 2026-10)."""
    if not plan.ack.version.startswith(ACK_VERSIONS):
        yield "cluster.ack.version", f"{plan.ack.version} is none that ACK supports: {', '.join(ACK_VERSIONS)}"


@rule("ack-has-nodes-for-itself", AlicloudAckPlan)
def ack_has_nodes_for_itself(_: AlicloudSpec, plan: AlicloudAckPlan) -> Iterator[Violation]:
    """Add-ons run on nodes without a GPU, before GPU nodes join (ACK User Guide, Use eRDMA in ACK)."""
    if all(group.gpu for group in plan.groups):
        yield "cluster.nodes", "ACK needs a group without GPUs for its add-ons, such as two ecs.g7.xlarge"


@rule("ack-knows-the-erdma-type", AlicloudAckPlan, level="warning")
def ack_knows_the_erdma_type(_: AlicloudSpec, plan: AlicloudAckPlan) -> Iterator[Violation]:
    """The add-on's page names gn8is, ebmgn8is, gn8v and ebmgn8v (ACK User Guide, Use eRDMA in ACK)."""
    for i, group in enumerate(plan.groups):
        if group.eris and not group.type.startswith(ACK_ERDMA):
            yield f"cluster.nodes[{i}].type", f"ack-erdma-controller is documented for {', '.join(ACK_ERDMA)}"
