"""The control plane of a cluster of EKS, its log, and who may use it.

Sources: EKS User Guide, "Cluster API server endpoint", "Encrypt Kubernetes secrets with KMS", "Control plane logs" (the
log group's name is the cluster's), "Grant IAM users access with EKS access entries" and "Access policies".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_aws import cloudwatch, eks

from infra.clouds.aws.plan.eks_model import EksPlan
from infra.clouds.aws.resources.eks.roles import CONTROL_PLANE, role
from infra.clouds.aws.resources.iam.documents import assumed_for
from infra.clouds.dependencies import once

if TYPE_CHECKING:
    from pulumi_aws.eks import ClusterVpcConfigArgsDict

ADMIN_POLICY = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"


@dataclass(frozen=True, kw_only=True)
class ControlPlaneArgs:
    """What the control plane needs. owner: the account's number. subnets: ids of the plan's, in its order."""

    plan: EksPlan
    region: str
    owner: Input[str]
    subnets: Sequence[Input[str]]
    group_id: Input[str]
    key_arn: Input[str]


class ControlPlane(ComponentResource):
    """name: of the cluster, known once it is there. server: of its API. authority: that it trusts, in base64."""

    name: Output[str]
    server: Output[str]
    authority: Output[str]

    def __init__(self, name: str, args: ControlPlaneArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:aws:ControlPlane", name, {}, opts)
        child, plan = ResourceOptions(parent=self), args.plan
        log = cloudwatch.LogGroup(
            f"{name}-log",
            name=f"/aws/eks/{plan.name}/cluster",
            retention_in_days=plan.log_retention_days,
            kms_key_id=args.key_arn,
            opts=child,
        )
        cluster = eks.Cluster(
            f"{name}-cluster",
            name=once(plan.name, log.arn),  # EKS makes a log group of its own, without an end, where there is none
            version=plan.version,
            role_arn=role(name, _trust(args), CONTROL_PLANE, child),
            vpc_config=_network(args),
            access_config={"authentication_mode": "API", "bootstrap_cluster_creator_admin_permissions": False},
            bootstrap_self_managed_addons=False,
            encryption_config={"provider": {"key_arn": args.key_arn}, "resources": ["secrets"]},
            enabled_cluster_log_types=list(plan.logs),
            upgrade_policy={"support_type": plan.support},
            opts=child,
        )
        self.name, self.server = cluster.name, cluster.endpoint
        self.authority = cluster.certificate_authority.apply(lambda ca: (ca.data or "") if ca else "")
        for principal in plan.admins:
            self._admin(principal)
        self.register_outputs({"name": self.name})

    def _admin(self, principal: str) -> None:
        child, who = ResourceOptions(parent=self), re.sub(r"\W+", "-", principal.removeprefix("arn:aws:iam::"))
        entry = eks.AccessEntry(f"{who}-entry", cluster_name=self.name, principal_arn=principal, opts=child)
        eks.AccessPolicyAssociation(
            f"{who}-rights",
            cluster_name=self.name,
            principal_arn=entry.principal_arn,
            policy_arn=ADMIN_POLICY,
            access_scope={"type": "cluster"},
            opts=child,
        )


def _trust(args: ControlPlaneArgs) -> Output[str]:
    """EKS User Guide, "Cross-service confused deputy prevention in Amazon EKS"."""
    cluster = Output.concat("arn:aws:eks:", args.region, ":", args.owner, ":cluster/", args.plan.name)
    return assumed_for(args.owner, "eks.amazonaws.com", cluster)


def _network(args: ControlPlaneArgs) -> ClusterVpcConfigArgsDict:
    """The VPC reaches the API always; the internet only from the plan's networks, since without any it would be all."""
    network: ClusterVpcConfigArgsDict = {
        "subnet_ids": list(args.subnets),
        "security_group_ids": [args.group_id],
        "endpoint_private_access": True,
        "endpoint_public_access": bool(args.plan.api_from),
    }
    if args.plan.api_from:
        network["public_access_cidrs"] = list(args.plan.api_from)
    return network
