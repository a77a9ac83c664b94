"""A cluster of EKS: control plane, what its nodes need to join, the nodes, and what runs on them.

Source: EKS User Guide, "Amazon EKS node IAM role" and "AWS add-ons" (a network plug-in comes before nodes, DNS needs
some to run on).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_aws import eks as aws_eks

from infra.clouds.aws.plan.capacity import ManagedPool
from infra.clouds.aws.plan.eks_model import EksPlan
from infra.clouds.aws.plan.model import AwsPlan
from infra.clouds.aws.resources.eks.addons import Addons, AddonsArgs
from infra.clouds.aws.resources.eks.cluster import ControlPlane, ControlPlaneArgs
from infra.clouds.aws.resources.eks.nodes import ManagedNodes, ManagedNodesArgs
from infra.clouds.aws.resources.eks.roles import assumed_by_pods, role
from infra.clouds.aws.resources.iam.documents import assumed_by
from infra.clouds.aws.resources.iam.identity import IdentityArgs, statements
from infra.clouds.dependencies import once
from infra.clouds.kubernetes.plan.tenant import SERVICE_ACCOUNT
from infra.clouds.kubernetes.resources.login import kubeconfig
from infra.clouds.kubernetes.resources.objects import Tenant, TenantArgs


@dataclass(frozen=True, kw_only=True)
class KubernetesArgs:
    """What the cluster needs. owner: the account's number. vpc_id: known once its way to S3 is there.

    subnets, security_groups: ids, and buckets: ARNs, by the plan's names.
    """

    plan: AwsPlan
    eks: EksPlan
    owner: Input[str]
    vpc_id: Input[str]
    subnets: Mapping[str, Input[str]]
    security_groups: Mapping[str, Input[str]]
    buckets: Mapping[str, Input[str]]
    key_arn: Input[str]


class Kubernetes(ComponentResource):
    """The whole of it, in the order in which it comes to life."""

    def __init__(self, name: str, args: KubernetesArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:aws:Kubernetes", name, {}, opts)
        child, plan, eks = ResourceOptions(parent=self), args.plan, args.eks
        control_plane = ControlPlane(
            "control-plane",
            ControlPlaneArgs(
                plan=eks,
                region=plan.region,
                owner=args.owner,
                subnets=[args.subnets[subnet] for subnet in eks.subnets],
                group_id=args.security_groups[eks.security_group],
                key_arn=args.key_arn,
            ),
            child,
        )
        allowed = statements(
            IdentityArgs(plan=plan.permissions, buckets=args.buckets, key_arn=args.key_arn, vpc_id=args.vpc_id)
        )
        role_arn = role("nodes", assumed_by("ec2.amazonaws.com"), allowed, child)
        network = self._addons("node-addons", args, control_plane.name, before_nodes=True)
        joinable = once(control_plane.name, *network.ready)
        nodes = [
            ManagedNodes(
                group.name,
                ManagedNodesArgs(
                    plan=group,
                    managed=group.capacity,
                    stack=plan.stack,
                    cluster=joinable,
                    version=eks.version,
                    role_arn=role_arn,
                    subnets=[args.subnets[subnet] for subnet in group.subnets],
                    group_id=args.security_groups[group.security_group],
                    key_arn=args.key_arn,
                    tags=plan.tags,
                ),
                child,
            ).ready
            for group in plan.groups
            if isinstance(group.capacity, ManagedPool)
        ]
        addons = self._addons("cluster-addons", args, once(control_plane.name, *nodes), before_nodes=False)
        if eks.tenant is not None:
            self._identity(args, eks.tenant.namespace, control_plane.name)
            cluster = once(control_plane.name, *addons.ready)
            token = ["aws", "eks", "get-token", "--region", plan.region, "--cluster-name", cluster]
            login = kubeconfig(control_plane.server, control_plane.authority, token)
            Tenant(eks.tenant.namespace, TenantArgs(plan=eks.tenant, kubeconfig=login), child)
        self.register_outputs({})

    def _identity(self, args: KubernetesArgs, namespace: str, cluster: Output[str]) -> None:
        """The role of the tenant's own pods, where the stack has something that they may use."""
        child, plan = ResourceOptions(parent=self), args.eks
        if not plan.tenant_permissions:
            return
        allowed = statements(
            IdentityArgs(plan=plan.tenant_permissions, buckets=args.buckets, key_arn=args.key_arn, vpc_id=args.vpc_id)
        )
        trust = assumed_by_pods(args.owner, plan.name, namespace, SERVICE_ACCOUNT)
        aws_eks.PodIdentityAssociation(
            "tenant-identity",
            cluster_name=cluster,
            namespace=namespace,
            service_account=SERVICE_ACCOUNT,
            role_arn=role("tenant", trust, allowed, child),
            opts=child,
        )

    def _addons(self, name: str, args: KubernetesArgs, cluster: Output[str], *, before_nodes: bool) -> Addons:
        plan = [addon for addon in args.eks.addons if addon.before_nodes == before_nodes]
        addons = AddonsArgs(
            plan=plan,
            name=args.eks.name,
            cluster=cluster,
            owner=args.owner,
            buckets=args.buckets,
            key_arn=args.key_arn,
            vpc_id=args.vpc_id,
        )
        return Addons(name, addons, ResourceOptions(parent=self))
