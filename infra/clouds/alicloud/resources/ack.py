"""A managed cluster of ACK and its node pools.

Sources: pulumi-alicloud 4.0.0, cs.ManagedKubernetes (without a word its API has an address of the internet, a NAT
gateway of its own comes along, and the projects of its logs stay behind; `addons` are read only once) and cs.NodePool
(a pool of managed nodes knows a key pair and no password; its number of nodes is a text); CS API, CreateCluster; ACK
User Guide, "Use RRSA to authorize different pods to access different cloud services" (with RRSA, ACK makes the
cluster's issuer and registers it with RAM as an OIDC provider).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulumi import ComponentResource, CustomResource, Input, InvokeOutputOptions, Output, Resource, ResourceOptions
from pulumi_alicloud import cs

from infra.clouds.alicloud.plan.capacity import ManagedPool, Spot
from infra.clouds.alicloud.plan.iam import pods_role
from infra.clouds.alicloud.plan.model import AckPlan, AddonPlan, AlicloudGroupPlan
from infra.clouds.alicloud.resources.identity import Identity, IdentityArgs, assumed_by_pods
from infra.clouds.dependencies import once
from infra.clouds.kubernetes.plan.model import TenantPlan
from infra.clouds.kubernetes.plan.tenant import SERVICE_ACCOUNT
from infra.clouds.kubernetes.resources.login import kubeconfig
from infra.clouds.kubernetes.resources.objects import Tenant, TenantArgs

if TYPE_CHECKING:
    from pulumi_alicloud.cs import ManagedKubernetesAddonArgsDict

LOGS = ["apiserver", "kcm", "scheduler", "ccm"]
LOG_DAYS = "30"
LEFT = ["SLS_Data", "SLS_ControlPlane"]  # the projects of the Log Service that ACK makes, and keeps unless told
INGRESS = "nginx-ingress-controller"  # which would come with a balancer of the internet


@dataclass(frozen=True, kw_only=True)
class AckArgs:
    """What the cluster needs. vswitches: ids by name. buckets: names by the plan's. tags: the stack's own."""

    plan: AckPlan
    groups: Sequence[AlicloudGroupPlan]
    vswitches: Mapping[str, Input[str]]
    group_id: Input[str]
    key_id: Input[str]
    key_arn: Input[str]
    key_name: Input[str] | None
    buckets: Mapping[str, Input[str]]
    stack: str
    tags: Mapping[str, str]


class Ack(ComponentResource):
    """The control plane, its add-ons, and pools: those without GPUs first, whose nodes the add-ons run on."""

    cluster_id: Output[str]

    def __init__(self, name: str, args: AckArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:alicloud:Ack", name, {}, opts)
        child, plan = ResourceOptions(parent=self), args.plan
        subnets = [args.vswitches[each] for each in plan.vswitches]
        cluster = cs.ManagedKubernetes(
            f"{name}-cluster",
            name=plan.name,
            version=self._release(plan.version),
            cluster_spec=plan.spec,
            vswitch_ids=subnets,
            pod_vswitch_ids=subnets,
            service_cidr=plan.service_cidr,
            security_group_id=args.group_id,
            slb_internet_enabled=False,
            new_nat_gateway=False,
            enable_rrsa=True,
            disable_encryption=False,
            encryption_provider_key=args.key_id,
            proxy_mode="ipvs",
            control_plane_log_components=LOGS,
            control_plane_log_ttl=LOG_DAYS,
            audit_log_config={"enabled": True},
            deletion_protection=False,
            delete_options=[{"delete_mode": "delete", "resource_type": each} for each in LEFT],
            skip_set_certificate_authority=True,
            addons=[*map(_born, (each for each in plan.addons if each.born)), {"name": INGRESS, "disabled": True}],
            tags=args.tags,
            opts=child,
        )
        self.cluster_id = cluster.id
        self._args = args
        plain = [self._pool(group, ()) for group in args.groups if group.gpu is None]
        addons = [self._addon(each.name, each.settings, plain) for each in plan.addons if not each.born]
        pools = [self._pool(group, addons) for group in args.groups if group.gpu is not None]
        if plan.tenant is not None:
            server = cluster.connections.apply(lambda ways: (ways[0].api_server_intranet or "") if ways else "")
            login = self._login(server, [*plain, *addons, *pools])
            role = self._role(cluster, plan.tenant)
            Tenant(plan.tenant.namespace, TenantArgs(plan=plan.tenant, kubeconfig=login, role=role), child)
        self.register_outputs({"cluster_id": self.cluster_id})

    def _role(self, cluster: cs.ManagedKubernetes, tenant: TenantPlan) -> dict[str, Input[str]]:
        """The role of the tenant's pods, as the variables by which SDKs find it."""
        if tenant.identity is None:
            return {}
        provider = cluster.rrsa_metadata.apply(lambda rrsa: registered(rrsa.ram_oidc_provider_arn if rrsa else None))
        issuer = cluster.rrsa_metadata.apply(lambda rrsa: registered(rrsa.rrsa_oidc_issuer_url if rrsa else None))
        subject = f"system:serviceaccount:{tenant.namespace}:{SERVICE_ACCOUNT}"
        may = IdentityArgs(
            plan=self._args.plan.tenant_permissions,
            role=pods_role(self._args.stack),
            trust=assumed_by_pods(provider, issuer, tenant.identity.audience, subject),
            buckets=self._args.buckets,
            key_arn=self._args.key_arn,
        )
        role = Identity("pods", may, opts=ResourceOptions(parent=self))
        return {"ALIBABA_CLOUD_OIDC_PROVIDER_ARN": provider, "ALIBABA_CLOUD_ROLE_ARN": role.role_arn}

    def _release(self, version: str) -> Input[str]:
        """What ACK calls a version: 1.35 is the newest 1.35.x-aliyun.y; one that is whole already stays what it is."""
        if version.count(".") > 1:
            return version
        child = InvokeOutputOptions(parent=self)
        response = cs.get_kubernetes_version_output(cluster_type="ManagedKubernetes", profile="Default", opts=child)
        return response.metadatas.apply(lambda known: newest(version, [each.version for each in known]))

    def _login(self, server: Output[str], after: Sequence[CustomResource]) -> Output[str]:
        """Of the credential that ACK gives out, only the certificate authority is taken: the rest runs out, and is new
        each time. ack-ram-tool gets one when it is needed (its documentation, "credential-plugin")."""
        cluster = once(self.cluster_id, *(each.id for each in after))
        response = cs.get_cluster_credential_output(cluster_id=cluster, opts=InvokeOutputOptions(parent=self))
        authority = response.certificate_authorities[0].cluster_cert
        credential = ["ack-ram-tool", "credential-plugin", "get-credential", "--cluster-id", cluster]
        return kubeconfig(server, authority, [*credential, "--api-version", "v1beta1", "--log-level", "error"])

    def _addon(self, name: str, settings: Mapping[str, object], after: Sequence[Resource]) -> CustomResource:
        return cs.KubernetesAddon(
            f"addon-{name}",
            cluster_id=self.cluster_id,
            name=name,
            config=json.dumps(dict(settings), sort_keys=True) if settings else None,
            opts=ResourceOptions(parent=self, depends_on=list(after)),
        )

    def _pool(self, group: AlicloudGroupPlan, after: Sequence[Resource]) -> CustomResource:
        """GPU nodes that join before the eRDMA controller is there would have to be added anew."""
        assert isinstance(group.capacity, ManagedPool)
        pool, root = group.capacity, group.root
        spot = group.market if isinstance(group.market, Spot) else None
        cap = spot and spot.max_price_cny_per_hour
        return cs.NodePool(
            f"{group.name}-pool",
            cluster_id=self.cluster_id,
            node_pool_name=group.name,
            desired_size=str(pool.nodes),
            vswitch_ids=[self._args.vswitches[each] for each in group.vswitches],
            security_group_ids=[self._args.group_id],
            instance_types=[group.type],
            instance_charge_type="PostPaid",
            image_type=pool.image_type,
            key_name=self._args.key_name,
            system_disk_category=root.category,
            system_disk_size=root.size_gib,
            system_disk_performance_level=root.level,
            system_disk_encrypted=root.encrypted,
            system_disk_kms_key=self._args.key_id,
            instance_metadata_options={"http_tokens": "required"},
            labels=[{"key": key, "value": value} for key, value in sorted(pool.labels.items())],
            taints=[{"key": key, "value": value, "effect": "NoSchedule"} for key, value in sorted(pool.taints.items())],
            management={"enable": True, "auto_repair": True, "auto_upgrade": False},
            tags={**self._args.tags, **group.tags},
            spot_strategy=spot and spot.strategy,
            spot_price_limits=None if cap is None else [{"instance_type": group.type, "price_limit": f"{cap:g}"}],
            spot_instance_remedy=True if spot else None,
            multi_az_policy="COST_OPTIMIZED" if spot else None,
            compensate_with_on_demand=None if spot is None else spot.fallback is not None,
            opts=ResourceOptions(parent=self, depends_on=list(after)),
        )


def registered(value: str | None) -> str:
    """What a role of the cluster's pods must name, since it would let in nobody, or somebody else, without."""
    if not value:
        raise ValueError(
            "ACK has told no issuer or OIDC provider of the cluster: is RRSA on, and RAM's quota not used up?"
        )
    return value


def _born(addon: AddonPlan) -> ManagedKubernetesAddonArgsDict:
    """An add-on that comes with the control plane."""
    if not addon.settings:
        return {"name": addon.name}
    return {"name": addon.name, "config": json.dumps(dict(addon.settings), sort_keys=True)}


def newest(version: str, released: Sequence[str]) -> str:
    """The newest release of a minor version; the version itself where there is none, which ACK then refuses."""
    own = [each for each in released if each.startswith(f"{version}.")]
    return max(own, key=lambda each: [int(part) for part in re.findall(r"\d+", each)], default=version)
