"""A group of nodes of a cluster of EKS: our launch template, and the managed node group that starts nodes from it.

Sources: EKS User Guide, "Customize managed nodes with launch templates" (what a template must leave to EKS) and
"Enable node auto repair"; amazon-eks-ami, nodeadm (a part of the user data is merged with what EKS adds).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_aws import eks

from infra.clouds.aws.plan.capacity import ManagedPool
from infra.clouds.aws.plan.model import AwsGroupPlan
from infra.clouds.aws.resources.nodes.capacity_block import reservation_id
from infra.clouds.aws.resources.nodes.launch_template import LaunchArgs, base64_of, launch_template
from infra.clouds.aws.resources.nodes.node_group import placement_group

USER_DATA = """\
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="gpufleet"

--gpufleet
Content-Type: application/node.eks.aws

{}
--gpufleet--
"""


@dataclass(frozen=True, kw_only=True)
class ManagedNodesArgs:
    """What managed nodes need. version: of Kubernetes. subnets: ids of the plan's, in its order. tags: the stack's."""

    plan: AwsGroupPlan
    managed: ManagedPool
    stack: str
    cluster: Input[str]
    version: str
    role_arn: Input[str]
    subnets: Sequence[Input[str]]
    group_id: Input[str]
    key_arn: Input[str]
    tags: Mapping[str, str]


class ManagedNodes(ComponentResource):
    """EKS makes the scaling group, and lets its nodes into the cluster. ready: the group's id, once they are in."""

    ready: Output[str]

    def __init__(self, name: str, args: ManagedNodesArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:aws:ManagedNodes", name, {}, opts)
        child, plan, managed = ResourceOptions(parent=self), args.plan, args.managed
        template = launch_template(
            f"{name}-template",
            LaunchArgs(
                plan=plan,
                image_id=None,
                subnet_id=args.subnets[0],
                group_id=args.group_id,
                profile_arn=None,
                key_arn=args.key_arn,
                key_name=None,
                placement_group=placement_group(f"{name}-placement", plan.placement, child),
                reservation_id=reservation_id(plan.market, child),
                tags={"Name": f"{args.stack}-{name}", **args.tags, **plan.tags},
                user_data=base64_of(node_config(plan, managed)),
            ),
            child,
        )
        self.ready = eks.NodeGroup(
            f"{name}-nodes",
            cluster_name=args.cluster,
            node_role_arn=args.role_arn,
            subnet_ids=list(args.subnets),
            version=args.version,
            ami_type=managed.image_type,
            capacity_type=managed.capacity_type,
            launch_template={"id": template.id, "version": template.latest_version.apply(str)},
            scaling_config={"min_size": managed.nodes, "max_size": managed.nodes, "desired_size": managed.nodes},
            labels=managed.labels,
            taints=[{"key": key, "value": value, "effect": "NO_SCHEDULE"} for key, value in managed.taints.items()],
            update_config={"max_unavailable": 1, "update_strategy": managed.update},
            node_repair_config={"enabled": True},
            opts=child,
        ).id
        self.register_outputs({})


def node_config(plan: AwsGroupPlan, managed: ManagedPool) -> str:
    """The user data: how many pods a node has, and its local disks as one. JSON is YAML too."""
    spec: dict[str, object] = {"kubelet": {"config": {"maxPods": managed.pods}}}
    if plan.scratch is not None:
        spec["instance"] = {"localStorage": {"strategy": "RAID0"}}
    return USER_DATA.format(json.dumps({"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": spec}))
