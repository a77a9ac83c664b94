"""What EKS itself puts into a cluster, and the roles that its pods take on.

Source: EKS User Guide, "AWS add-ons" and "How EKS Pod Identity works".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_aws import eks

from infra.clouds.aws.plan.eks_model import AddonPlan
from infra.clouds.aws.resources.eks.roles import assumed_by_pods, role
from infra.clouds.aws.resources.iam.identity import IdentityArgs, statements

if TYPE_CHECKING:
    from pulumi_aws.eks import AddonPodIdentityAssociationArgsDict

NAMESPACE = "kube-system"  # of all add-ons' pods by default


@dataclass(frozen=True, kw_only=True)
class AddonsArgs:
    """What add-ons need. name: of the cluster. cluster: the same, known once add-ons may come. owner: the account's
    number. buckets: their ARNs by the plan's names."""

    plan: Sequence[AddonPlan]
    name: str
    cluster: Input[str]
    owner: Input[str]
    buckets: Mapping[str, Input[str]]
    key_arn: Input[str]
    vpc_id: Input[str]


class Addons(ComponentResource):
    """ready: ids of the add-ons, known once they run."""

    ready: list[Output[str]]

    def __init__(self, name: str, args: AddonsArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:aws:Addons", name, {}, opts)
        self.ready = [self._addon(plan, args).id for plan in args.plan]
        self.register_outputs({})

    def _addon(self, plan: AddonPlan, args: AddonsArgs) -> eks.Addon:
        child = ResourceOptions(parent=self)
        identities: list[AddonPodIdentityAssociationArgsDict] = []
        if plan.service_account is not None:
            allowed = statements(
                IdentityArgs(plan=plan.permissions, buckets=args.buckets, key_arn=args.key_arn, vpc_id=args.vpc_id)
            )
            trust = assumed_by_pods(args.owner, args.name, NAMESPACE, plan.service_account)
            arn = role(plan.name, trust, allowed, child)
            identities.append({"role_arn": arn, "service_account": plan.service_account})
        return eks.Addon(
            f"{plan.name}-addon",
            addon_name=plan.name,
            cluster_name=args.cluster,
            configuration_values=json.dumps(plan.settings, sort_keys=True) if plan.settings else None,
            pod_identity_associations=identities or None,
            resolve_conflicts_on_create="OVERWRITE",
            resolve_conflicts_on_update="PRESERVE",
            opts=child,
        )
