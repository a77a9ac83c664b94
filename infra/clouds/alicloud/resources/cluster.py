"""How a cluster on Alibaba Cloud is declared: each concern a component, in the order in which they need each other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pulumi import ComponentResource, Input, InvokeOutputOptions, Output, ResourceOptions
from pulumi_alicloud import Provider, ecs

from infra import handover
from infra.clouds.alicloud.plan.iam import nodes_role, storage_role_name
from infra.clouds.alicloud.plan.model import AckPlan, AlicloudAckPlan, AlicloudGroupPlan, AlicloudPlan
from infra.clouds.alicloud.resources import copies
from infra.clouds.alicloud.resources.access import Access, AccessArgs
from infra.clouds.alicloud.resources.ack import Ack, AckArgs
from infra.clouds.alicloud.resources.bucket import Bucket, BucketArgs
from infra.clouds.alicloud.resources.bundle import Bundle
from infra.clouds.alicloud.resources.encryption import Encryption, EncryptionArgs
from infra.clouds.alicloud.resources.events import Events, EventsArgs
from infra.clouds.alicloud.resources.flow_log import FlowLog, FlowLogArgs
from infra.clouds.alicloud.resources.identity import Identity, IdentityArgs, StorageArgs, assumed_by
from infra.clouds.alicloud.resources.network import Network, NetworkArgs
from infra.clouds.alicloud.resources.nodes.launch_spec import LaunchArgs, base64_of
from infra.clouds.alicloud.resources.nodes.node_group import NodeGroup, NodeGroupArgs
from infra.clouds.alicloud.resources.nodes.user_data import SCRIPT, BootData
from infra.clouds.base.resources.boot import user_data
from infra.clouds.base.resources.bundle import BundleArgs
from infra.clouds.base.resources.handover import handed_over
from infra.clouds.tags import ENTRANCE, named

OWN_BUCKET = ""  # the plan's name for the bucket that holds the playbook bundle


class Cluster(ComponentResource):
    """The whole cluster. folder: the folder for what is uploaded.

    store: the address where nodes reach the rendezvous store, empty where no machine is there to run it yet.
    storage: by name, the buckets that are mounted. storage_role: see `Identity`. kubernetes: the id of a cluster of
    ACK.
    """

    store: Input[str]
    storage_role: Input[str]
    storage: Mapping[str, Input[str]]

    def __init__(self, name: str, plan: AlicloudPlan, folder: Path, opts: ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:alicloud:Cluster", name, {}, opts)
        self._plan = plan
        child = ResourceOptions(parent=self)
        self._network = network = Network("network", NetworkArgs(plan=plan.network, stack=plan.stack), child)
        self._key = Encryption("encryption", EncryptionArgs(plan=plan.key), child)
        access_args = AccessArgs(plan=plan.access, network=plan.network, stack=plan.stack, vpc_id=network.vpc_id)
        self._access = Access("access", access_args, child)
        FlowLog("flow-log", FlowLogArgs(plan=plan.network.flow_log, vpc_id=network.vpc_id), child)
        events = EventsArgs(plan=plan.interruption, budget=plan.budget, stack=plan.stack, region=plan.region)
        Events("interruption", events, child)
        self._buckets = self._declare_buckets()
        self.storage = {name: bucket for name, bucket in self._buckets.items() if name != OWN_BUCKET}
        self.store = self.storage_role = ""
        if isinstance(plan, AlicloudAckPlan):
            self._kubernetes(plan.ack)
        else:
            self._machines(folder)
        self.register_outputs({"store": self.store})

    def _declare_buckets(self) -> dict[str, Output[str]]:
        retentions = {OWN_BUCKET: self._plan.bundle} if self._plan.bundle else {}
        retentions |= {plan.name: plan.retention for plan in self._plan.storage}
        return {
            name: Bucket(
                f"storage-{name}" if name else "own",
                BucketArgs(plan=retention, key_id=self._key.key_id),
                ResourceOptions(parent=self),
            ).bucket
            for name, retention in retentions.items()
        }

    def _machines(self, folder: Path) -> None:
        """Nodes that a playbook makes."""
        child, plan = ResourceOptions(parent=self), self._plan
        self._bundle = Bundle("bundle", BundleArgs(bucket=self._buckets[OWN_BUCKET], folder=folder), child)
        may = IdentityArgs(
            plan=plan.permissions or (),
            role=nodes_role(plan.stack),
            trust=assumed_by("ecs.aliyuncs.com"),
            buckets=self._buckets,
            key_arn=self._key.key_arn,
        )
        storage = StorageArgs(plan=plan.storage_role_permissions, role=storage_role_name(plan.stack))
        self._identity = Identity("nodes", may, storage if storage.plan else None, child)
        self.storage_role = self._identity.storage_role
        groups = {group.name: self._node_group(group) for group in plan.groups}
        if plan.store is not None:
            self.store = groups[plan.store.group].address or ""

    def _kubernetes(self, plan: AckPlan) -> None:
        """Nodes that ACK makes."""
        (group_id,) = self._access.security_groups.values()
        args = AckArgs(
            plan=plan,
            groups=self._plan.groups,
            vswitches=self._network.vswitches,
            group_id=group_id,
            key_id=self._key.key_id,
            key_arn=self._key.key_arn,
            key_name=self._access.key_name,
            buckets=self._buckets,
            stack=self._plan.stack,
            tags=self._plan.tags,
        )
        Ack("kubernetes", args, ResourceOptions(parent=self))

    def _node_group(self, plan: AlicloudGroupPlan) -> NodeGroup:
        zones = {each.name: each.zone for each in self._plan.network.vswitches}
        vswitches = [self._network.vswitches[each] for each in plan.vswitches]
        launch = LaunchArgs(
            plan=plan,
            stack=self._plan.stack,
            image_id=self._image(plan),
            vswitch_id=vswitches[0],
            group_id=self._access.security_groups[plan.security_group],
            role_name=self._identity.role_name,
            key_id=self._key.key_id,
            key_name=self._access.key_name,
            deployment_set_id=None,
            hpc_cluster_id=None,
            pool_id=None,
            tags={**self._plan.tags, **plan.tags, **({ENTRANCE: "true"} if plan.public_address else {})},
            user_data=base64_of(self._user_data(plan)),
        )
        args = NodeGroupArgs(
            plan=plan, zones=[zones[each] for each in plan.vswitches], vswitches=vswitches, launch=launch
        )
        return NodeGroup(plan.name, args, ResourceOptions(parent=self))

    def _image(self, group: AlicloudGroupPlan) -> Input[str]:
        """By the instance type: an image that does not boot there, as UEFI ones do not everywhere, is no answer."""
        if group.image.recorded is not None:
            return group.image.recorded
        return (
            ecs.get_images_output(
                name_regex=group.image.name_regex,
                owners="system",
                instance_type=group.type,
                most_recent=True,
                opts=InvokeOutputOptions(parent=self),
            )
            .images[0]
            .id
        )

    def _user_data(self, group: AlicloudGroupPlan) -> Output[str]:
        access = handover.Access(user=self._plan.access.user, key_file="", known_hosts_file="")
        return user_data(
            SCRIPT,
            BootData(
                group=group.name,
                handover=_handover(self._plan, access, "", self.storage, self.storage_role),
                bucket=self._bundle.bucket,
                key=self._bundle.key,
                sha256=self._bundle.sha256,
                role=self._identity.role_name,
            ),
        )


def declare(plan: AlicloudPlan, root: Path) -> Output[dict[str, Any]]:
    """Declares the cluster and returns its handover as plain JSON."""
    place = root / ".gpufleet" / plan.cloud / plan.stack
    login = handover.Access(
        user=plan.access.user,
        key_file=str(place / "key") if plan.access.key_pair else "",
        known_hosts_file=str(place / "known_hosts"),
    )
    provider = Provider("alicloud", region=plan.region)
    opts = ResourceOptions(providers=[provider], transformations=[named(plan.stack, plan.tags)])
    cluster = Cluster(plan.stack, plan, root / ".gpufleet" / "bundles", opts)
    known = _handover(plan, login, cluster.store, cluster.storage, cluster.storage_role)
    return Output.all(known, [copies.copied(copy) for copy in plan.copies]).apply(
        lambda parts: {**parts[0], "copies": parts[1]}
    )


def _handover(
    plan: AlicloudPlan,
    access: handover.Access,
    store: Input[str],
    storage: Mapping[str, Input[str]],
    storage_role: Input[str],
) -> Output[dict[str, Any]]:
    kubernetes = plan.ack.name if isinstance(plan, AlicloudAckPlan) else None
    return handed_over(plan, access, store, storage, storage_role, kubernetes)
