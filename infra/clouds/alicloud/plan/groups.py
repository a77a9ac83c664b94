"""Each group of nodes, decided: its eRDMA interfaces, how it is bought, what declares it, where it stands.

Sources: ECS API, RunInstances and CreateDeploymentSet; ECS User Guide, "Deployment sets" (the families that LowLatency
takes; it may grow: DescribeDeploymentSetSupportedInstanceTypeFamily); pulumi-alicloud 4.0.0 (what each resource can
say of network interfaces, deployment sets and HPC clusters).

Three honest shapes for two ERIs: machines declared one by one, a scaling group whose nodes add their own interfaces by
the API, or ACK, whose controller does. The first is taken: fixed clusters are what trains, everything about a node
stands in the plan, and no node holds the right to change networks. Nodes with two do not come and go.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

from infra.catalog import InstanceType, load
from infra.checks.layout import Refusals
from infra.clouds.alicloud.plan import eri
from infra.clouds.alicloud.plan.capacity import (
    Assurance,
    Capacity,
    Elastic,
    FixedSize,
    Form,
    Machines,
    ManagedPool,
    Market,
    Mix,
    OnDemand,
    PrivatePool,
    Single,
    Spot,
)
from infra.clouds.alicloud.plan.model import AlicloudGroupPlan, DeploymentPlan, DiskPlan, ImagePlan
from infra.clouds.alicloud.spec import cluster as specs
from infra.clouds.alicloud.spec import market as markets
from infra.plan.layout import NoFabricError, PlacementError
from infra.plan.subnets import Kind

HEAD = "head"  # the name that makes a group the login machine
ROOT_GIB = {"head": 50, "worker": 200}  # driver, CUDA, containers and the Python environment of a worker
# Alibaba's public images, by their date. Those for machines that boot by UEFI alone have it in their name: public
# Terraform modules use ubuntu_22_04_uefi_x64_20G_alibase_20240807.vhd.
UBUNTU = r"^ubuntu_24_04_(uefi_)?x64_20G_alibase_"

GPU_LOAD_PERCENT = 85.0
METRIC = "GpuUtilizationAgent"  # ESS API, CreateScalingRule, MetricName
WARMUP_SECONDS = 600  # a node counts only once it is ready: driver, checks and container images take minutes
LOW_LATENCY = ("ecs.gn8v", "ecs.ebmgn8v", "ecs.ebmgn7ex")  # of the GPU families

GROUP_LABEL, MARKET_LABEL = "gpufleet.io/group", "gpufleet.io/market"
GPU_TAINT = {"nvidia.com/gpu": "present"}  # Kubernetes' custom: only what tolerates it comes to GPU nodes


@dataclass(frozen=True, kw_only=True)
class HostNodes:
    """What makes the groups' nodes: machines from Ubuntu's images, which playbooks configure. See AckNodes."""

    protectable: ClassVar[bool] = True

    def interfaces(self, group: specs.AlicloudNodes, kind: InstanceType) -> tuple[eri.Eri, ...]:
        """Declared with the machine. Raises NoFabricError."""
        return eri.interfaces(kind, group.queue_pairs)

    def capacity(
        self, group: specs.AlicloudNodes, kind: InstanceType, market: Market, eris: tuple[eri.Eri, ...]
    ) -> Capacity:
        """How many nodes there are, and what declares them."""
        if group.name == HEAD:
            return Single()
        form: Form = "configuration" if eris or isinstance(market, PrivatePool | Assurance) else "template"
        if group.count is None:
            return Elastic(
                form=form,
                least=group.min or 0,
                most=_most(group),
                gpu_load_percent=group.gpu_load or GPU_LOAD_PERCENT,
                metric=METRIC,
                warmup_seconds=WARMUP_SECONDS,
            )
        if kind.fabric == "roce" or len(eris) > 1:
            return Machines(nodes=group.count)
        if group.others:
            price = (market.max_price_cny_per_hour if isinstance(market, Spot) else None) or 0.0  # a rule asks for one
            return Mix(nodes=group.count, types=(group.type, *group.others), max_price_cny_per_hour=price)
        return FixedSize(nodes=group.count, form=form)


@dataclass(frozen=True, kw_only=True)
class AckNodes:
    """What makes the groups' nodes: node pools of ACK, which have no protected hour (pulumi-alicloud 4.0.0)."""

    protectable: ClassVar[bool] = False

    def interfaces(self, _: specs.AlicloudNodes, kind: InstanceType) -> tuple[eri.Eri, ...]:
        """ACK's controller makes the interfaces and shares the queue pairs itself. Raises NoFabricError."""
        if kind.fabric != "erdma":
            message = f"the fabric is required but {kind.name} has no eRDMA; choose a type with it, or drop `fabric`"
            raise NoFabricError(message)
        cards = range(kind.fabric_interfaces or 1)
        return tuple(eri.Eri(network_card_index=card, queue_pairs=None) for card in cards)

    def capacity(
        self, group: specs.AlicloudNodes, kind: InstanceType, market: Market, _: tuple[eri.Eri, ...]
    ) -> Capacity:
        """One pool for a group."""
        labels = {GROUP_LABEL: group.name, MARKET_LABEL: market.kind}
        return ManagedPool(nodes=_most(group), labels=labels, taints=GPU_TAINT if kind.gpu else {})


def vswitch_name(kind: Kind, zone: str) -> str:
    return f"{kind}-{zone}"


def group_plan(
    spec: specs.AlicloudSpec, index: int, nodes: HostNodes | AckNodes, refusals: Refusals
) -> AlicloudGroupPlan:
    """The plan of the group at that index of the stack file; what cannot be is noted at the key it is about."""
    group, here = spec.nodes[index], f"cluster.nodes[{index}]"
    kind = load().type(group.type)
    role: Literal["head", "worker"] = "head" if group.name == HEAD else "worker"
    zones = (group.zone,) if group.zone else spec.all_zones
    roce = kind.fabric == "roce" and group.fabric != "none"
    eris = () if roce else refusals.decided(f"{here}.fabric", partial(_eris, nodes, group, kind), ())
    fabric = "roce" if roce else "erdma" if eris else "tcp"
    market = _market(group.name, group.market, protectable=nodes.protectable)
    subnet_kind = _subnet_kind(spec, group, fabric)
    capacity = nodes.capacity(group, kind, market, eris)
    return AlicloudGroupPlan(
        name=group.name,
        count=group.count or group.min or 0,
        gpu=kind.gpu,
        gpus_per_node=kind.gpu_count,
        fabric=fabric,
        nodes=(),
        type=kind.name,
        role=role,
        market=market,
        capacity=capacity,
        vswitches=tuple(vswitch_name(subnet_kind, zone) for zone in zones),
        security_group=group.name,
        public_address=subnet_kind == "public",
        eris=eris,
        hpc=kind.fabric == "roce",
        fabric_gbps=kind.fabric_gbps,
        deployment=refusals.decided(
            f"{here}.{'zone' if fabric != 'tcp' and len(zones) > 1 else 'placement'}",
            partial(_deployment, group, kind, capacity, zones=len(zones), fabric=fabric),
            DeploymentPlan(strategy=None, reason="what was asked for cannot be"),
        ),
        image=ImagePlan(name_regex=UBUNTU, recorded=spec.images.x86_64),
        root=_root(group.root, role),
        tags={"gpufleet:group": group.name},
    )


def _most(group: specs.AlicloudNodes) -> int:
    return group.count or group.max or 0


def _eris(nodes: HostNodes | AckNodes, group: specs.AlicloudNodes, kind: InstanceType) -> tuple[eri.Eri, ...]:
    """Preferred: where the type has them, what declares the group can, and there is a second node to speak to."""
    if group.fabric == "none" or (group.fabric == "preferred" and kind.fabric != "erdma"):
        return ()
    if group.fabric == "preferred" and (_most(group) == 1 or group.name == HEAD):
        return ()
    try:
        eris = nodes.interfaces(group, kind)
        _check_shape(group, eris)
    except NoFabricError:
        if group.fabric == "required":
            raise
        return ()
    return eris


def _check_shape(group: specs.AlicloudNodes, eris: tuple[eri.Eri, ...]) -> None:
    """Only machines that are declared one by one take two (pulumi-alicloud 4.0.0). Raises NoFabricError."""
    if group.others:
        raise NoFabricError("an auto provisioning group starts its nodes from launch templates, which know no eRDMA")
    if len(eris) > 1 and group.count is None:
        raise NoFabricError(
            f"nodes with {len(eris)} eRDMA interfaces are declared one by one and cannot follow a load; give `count`"
        )


def _market(group: str, spec: markets.Market, *, protectable: bool) -> Market:
    """protectable: whether spot capacity can have a protected hour."""
    match spec:
        case markets.SpotMarket():
            protected = 1 if spec.protected_hour and protectable else 0
            return Spot(max_price_cny_per_hour=spec.max_price, fallback=spec.fallback, protected_hours=protected)
        case markets.PoolMarket():
            return PrivatePool(id=spec.id)
        case markets.AssuranceMarket():
            sentence = f"buy an elasticity assurance for {group} for {spec.months} months, never refunded"
            confirmed = spec.confirm == sentence
            name = f"{group}-assurance"
            return Assurance(name=name, months=spec.months, sentence=sentence, confirmed=confirmed)
        case markets.OnDemandMarket():
            return OnDemand()


def _subnet_kind(spec: specs.AlicloudSpec, group: specs.AlicloudNodes, fabric: str) -> Kind:
    """People reach a head from outside, and nobody reaches a node."""
    if spec.access.ssh_from and group.name == HEAD:
        return "public"
    return "private" if fabric == "tcp" else "fabric"


def _deployment(
    group: specs.AlicloudNodes, kind: InstanceType, capacity: Capacity, *, zones: int, fabric: str
) -> DeploymentPlan:
    """Raises PlacementError."""
    if fabric != "tcp" and zones != 1:
        raise PlacementError(f"the fabric is of one zone and one vSwitch, and this group spans {zones} zones; name one")
    if isinstance(capacity, ManagedPool):
        return DeploymentPlan(strategy=None, reason="the node pools name no deployment set")
    nameless = isinstance(capacity, FixedSize | Elastic) and capacity.form == "configuration"
    if group.placement == "apart":
        if fabric != "tcp" or nameless:
            raise PlacementError(
                "nodes of a fabric or of a private pool stand where they stand, and cannot be asked apart"
            )
        return DeploymentPlan(strategy="Availability", reason="machines of the set share no host")
    if kind.fabric == "roce":
        return DeploymentPlan(strategy=None, reason="a Super Computing Cluster is one network already")
    if nameless:
        return DeploymentPlan(strategy=None, reason="a scaling configuration cannot name a deployment set")
    if _most(group) > 1 and zones == 1 and kind.name.startswith(LOW_LATENCY):
        return DeploymentPlan(strategy="LowLatency", reason="the network is shortest between machines close together")
    return DeploymentPlan(strategy=None, reason="LowLatency takes few GPU families, and this is none of them")


def _root(spec: specs.Root | None, role: Literal["head", "worker"]) -> DiskPlan:
    if spec is None:
        return DiskPlan(size_gib=ROOT_GIB[role], level="PL1")
    return DiskPlan(size_gib=spec.size_gib, level=spec.level)
