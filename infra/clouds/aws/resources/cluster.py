"""How a cluster on AWS is declared: each concern a component, in the order in which they need each other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pulumi import ComponentResource, Input, InvokeOutputOptions, Output, ResourceOptions
from pulumi_aws import Provider, ssm

from infra import handover
from infra.clouds.aws.plan.model import AwsEksPlan, AwsGroupPlan, AwsPlan, ImagePlan, LustrePlan
from infra.clouds.aws.resources.budget import Budget, BudgetArgs
from infra.clouds.aws.resources.bundle import Bundle
from infra.clouds.aws.resources.eks import Kubernetes, KubernetesArgs
from infra.clouds.aws.resources.events import Events, EventsArgs
from infra.clouds.aws.resources.iam.identity import Identity, IdentityArgs
from infra.clouds.aws.resources.network.access import Access, AccessArgs
from infra.clouds.aws.resources.network.endpoints import Endpoints, EndpointsArgs
from infra.clouds.aws.resources.network.flow_log import FlowLog, FlowLogArgs
from infra.clouds.aws.resources.network.network import Network, NetworkArgs
from infra.clouds.aws.resources.nodes.node_group import NodeGroup, NodeGroupArgs
from infra.clouds.aws.resources.nodes.user_data import SCRIPT
from infra.clouds.aws.resources.storage.bucket import Bucket, BucketArgs
from infra.clouds.aws.resources.storage.encryption import Encryption, EncryptionArgs
from infra.clouds.aws.resources.storage.lustre import Lustre, LustreArgs
from infra.clouds.base.resources.boot import BootData, user_data
from infra.clouds.base.resources.bundle import BundleArgs
from infra.clouds.base.resources.handover import handed_over
from infra.clouds.dependencies import once
from infra.clouds.tags import named
from infra.plan.cloud_model import BucketPlan

OWN_BUCKET = ""  # the plan's name for the bucket that holds the playbook bundle


class Cluster(ComponentResource):
    """The whole cluster. folder: the folder for what is uploaded.

    store: the address where nodes reach the rendezvous store, empty where no machine is there to run it yet.
    storage: by name, what is mounted: a bucket's name, or the address of a file system. storage_role: see `Identity`.
    """

    store: Input[str]
    storage_role: Input[str]
    storage: Mapping[str, Input[str]]

    def __init__(self, name: str, plan: AwsPlan, folder: Path, opts: ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:aws:Cluster", name, {}, opts)
        self._plan = plan
        child = ResourceOptions(parent=self)
        self._network = network = Network("network", NetworkArgs(plan=plan.network), child)
        key = Encryption("encryption", EncryptionArgs(plan=plan.key, region=plan.region, owner=network.owner), child)
        self._key_arn = key.key_arn
        access_args = AccessArgs(plan=plan.access, network=plan.network, vpc_id=network.vpc_id)
        self._access = Access("access", access_args, child)
        self._surroundings()
        self._buckets = self._declare_buckets()
        file_systems = {name: files.address for name, files in self._declare_file_systems().items()}
        self.storage = {
            name: bucket.bucket for name, bucket in self._buckets.items() if name != OWN_BUCKET
        } | file_systems
        self.store = self.storage_role = ""
        if isinstance(plan, AwsEksPlan):
            self._kubernetes(plan)
        else:
            self._machines(folder)
        self.register_outputs({"store": self.store})

    def _machines(self, folder: Path) -> None:
        """Nodes that a playbook makes."""
        child, plan = ResourceOptions(parent=self), self._plan
        self._bundle = Bundle("bundle", BundleArgs(bucket=self._buckets[OWN_BUCKET].bucket, folder=folder), child)
        may = IdentityArgs(plan=plan.permissions, buckets=self._arns, key_arn=self._key_arn, vpc_id=self._vpc_id)
        self._identity = Identity("nodes", may, plan.storage_role_permissions, child)
        self.storage_role = self._identity.storage_role
        groups = {group.name: self._node_group(group) for group in plan.groups}
        if plan.store is not None:
            self.store = groups[plan.store.group].address or ""

    def _kubernetes(self, plan: AwsEksPlan) -> None:
        """Nodes that EKS makes."""
        args = KubernetesArgs(
            plan=plan,
            eks=plan.eks,
            owner=self._network.owner,
            vpc_id=self._vpc_id,
            subnets=self._network.subnets,
            security_groups=self._access.security_groups,
            buckets=self._arns,
            key_arn=self._key_arn,
        )
        Kubernetes("kubernetes", args, ResourceOptions(parent=self))

    @property
    def _arns(self) -> Mapping[str, Output[str]]:
        return {name: bucket.arn for name, bucket in self._buckets.items()}

    def _surroundings(self) -> None:
        """What stands around the nodes and knows nothing of them."""
        child, plan, network = ResourceOptions(parent=self), self._plan, self._network
        endpoints = Endpoints(
            "endpoints",
            EndpointsArgs(
                plan=plan.network.endpoints,
                vpc_id=network.vpc_id,
                subnets=network.subnets,
                route_tables=network.route_tables,
                security_groups=self._access.security_groups,
            ),
            child,
        )
        self._vpc_id = once(network.vpc_id, *endpoints.gateways)  # for whom buckets answer only by that way
        owned: dict[str, Input[str]] = {"owner": network.owner, "key_arn": self._key_arn}
        log = FlowLogArgs(plan=plan.network.flow_log, region=plan.region, vpc_id=network.vpc_id, **owned)
        FlowLog("flow-log", log, child)
        Events("interruption", EventsArgs(plan=plan.interruption, **owned), child)
        if plan.budget is not None:
            Budget("budget", BudgetArgs(plan=plan.budget, tag_value=plan.tags[plan.budget.tag]), child)

    def _declare_buckets(self) -> dict[str, Bucket]:
        retentions = {OWN_BUCKET: self._plan.bundle} if self._plan.bundle else {}
        retentions |= {plan.name: plan.retention for plan in self._plan.storage if isinstance(plan, BucketPlan)}
        return {
            name: Bucket(
                f"storage-{name}" if name else "own",
                BucketArgs(plan=retention, key_arn=self._key_arn),
                ResourceOptions(parent=self),
            )
            for name, retention in retentions.items()
        }

    def _declare_file_systems(self) -> dict[str, Lustre]:
        return {
            plan.name: Lustre(
                f"storage-{plan.name}",
                LustreArgs(
                    plan=plan,
                    subnet_id=self._network.subnets[plan.subnet],
                    group_id=self._access.security_groups[plan.security_group],
                    key_arn=self._key_arn,
                    bucket=None if plan.bucket is None else self._buckets[plan.bucket].bucket,
                ),
                ResourceOptions(parent=self),
            )
            for plan in self._plan.storage
            if isinstance(plan, LustrePlan)
        }

    def _node_group(self, plan: AwsGroupPlan) -> NodeGroup:
        return NodeGroup(
            plan.name,
            NodeGroupArgs(
                plan=plan,
                stack=self._plan.stack,
                image_id=self._image(plan.image),
                subnets=[self._network.subnets[subnet] for subnet in plan.subnets],
                group_id=self._access.security_groups[plan.security_group],
                profile_arn=self._identity.profile_arn,
                key_arn=self._key_arn,
                key_name=self._access.key_name,
                tags=self._plan.tags,
                user_data=self._user_data(plan),
            ),
            ResourceOptions(parent=self),
        )

    def _image(self, plan: ImagePlan) -> Input[str]:
        if plan.recorded is not None:
            return plan.recorded
        return ssm.get_parameter_output(name=plan.parameter, opts=InvokeOutputOptions(parent=self)).insecure_value

    def _user_data(self, group: AwsGroupPlan) -> Output[str]:
        """A node configures itself without logging in; it only has to know who will, for what shall be theirs."""
        access = handover.Access(user=self._plan.access.user, key_file="", known_hosts_file="")
        return user_data(
            SCRIPT,
            BootData(
                group=group.name,
                handover=_handover(self._plan, access, "", self.storage, self.storage_role),
                bucket=self._bundle.bucket,
                key=self._bundle.key,
                sha256=self._bundle.sha256,
            ),
        )


def declare(plan: AwsPlan, root: Path) -> Output[dict[str, Any]]:
    """Declares the cluster and returns its handover as plain JSON."""
    place = root / ".gpufleet" / plan.cloud / plan.stack
    login = handover.Access(
        user=plan.access.user,
        key_file=""
        if isinstance(plan, AwsEksPlan)
        else str(place / "key"),  # Session Manager needs a key of people's, too
        known_hosts_file=str(place / "known_hosts"),
    )
    provider = Provider("aws", region=plan.region, default_tags={"tags": dict(plan.tags)})
    opts = ResourceOptions(providers=[provider], transformations=[named(plan.stack)])
    cluster = Cluster(plan.stack, plan, root / ".gpufleet" / "bundles", opts)
    return _handover(plan, login, cluster.store, cluster.storage, cluster.storage_role)


def _handover(
    plan: AwsPlan,
    access: handover.Access,
    store: Input[str],
    storage: Mapping[str, Input[str]],
    storage_role: Input[str],
) -> Output[dict[str, Any]]:
    kubernetes = plan.eks.name if isinstance(plan, AwsEksPlan) else None
    return handed_over(plan, access, store, storage, storage_role, kubernetes)
