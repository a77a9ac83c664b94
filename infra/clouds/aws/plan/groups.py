"""Each group of nodes, decided: its cards, its disks, how it is bought, where it stands.

Sources: EC2 Fleet API, CreateFleet (instant alone is all or nothing, and the only kind for capacity blocks; maintain
refills); Auto Scaling API, InstancesDistribution; Canonical, "Find Ubuntu images with the AWS Systems Manager".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

from infra.catalog import InstanceType, load
from infra.checks.layout import Refusals
from infra.clouds.aws.plan import eks_nodes, nics
from infra.clouds.aws.plan.capacity import (
    Capacity,
    CapacityBlock,
    Elastic,
    FixedSize,
    Market,
    OnDemand,
    Purchase,
    Reservation,
    Single,
    Spot,
)
from infra.clouds.aws.plan.eks_nodes import EksNodes
from infra.clouds.aws.plan.model import AwsGroupPlan, ImagePlan
from infra.clouds.aws.plan.nics import NetworkCards
from infra.clouds.aws.plan.placement import Placement, placement
from infra.clouds.aws.plan.volumes import ImageDisks, Volume, VolumeNeed, root_volume, scratch
from infra.clouds.aws.spec import cluster as specs
from infra.clouds.aws.spec import market as markets
from infra.plan.layout import NoFabricError
from infra.plan.model import LoadMetric
from infra.plan.subnets import Kind

HEAD = "head"  # the name that makes a group the login machine

ROOT_GIB = {
    "head": 50,
    "worker": 200,
}  # driver, CUDA, containers and the Python environment of a worker; none on a head
UBUNTU = ImageDisks(root_device="/dev/sda1", gib=8, scratch="/scratch")  # Canonical's images
PARAMETER = "/aws/service/canonical/ubuntu/server/24.04/stable/current/{}/hvm/ebs-gp3/ami-id"
DEBIAN_NAMES: dict[Literal["x86_64", "arm64"], str] = {"x86_64": "amd64", "arm64": "arm64"}

GPU_LOAD_PERCENT = 85.0
METRIC_NAMESPACE, METRIC = "gpufleet", "gpu_utilization"
WARMUP_SECONDS = 600  # a node counts only once it is ready: driver, checks and container images take minutes
METADATA_HOP_LIMIT = 2  # 1, the default, ends at the host: containers would not reach it

ONE_CARD = NetworkCards(cards=1, interfaces_per_card=1, efa_interfaces=0, first_card_efa=False)
MARKETS: dict[type[Market], Literal["on-demand", "spot", "reservation", "capacity-block"]] = {
    OnDemand: "on-demand",
    Spot: "spot",
    Reservation: "reservation",
    CapacityBlock: "capacity-block",
}


@dataclass(frozen=True, kw_only=True)
class HostNodes:
    """What makes the groups' nodes: machines from Ubuntu's images, which playbooks configure. See EksNodes."""

    stack: str
    images: specs.Images
    disks: ClassVar[ImageDisks] = UBUNTU
    metadata_hop_limit: ClassVar[int] = METADATA_HOP_LIMIT
    mounts_storage: ClassVar[bool] = True

    def capacity(self, group: specs.AwsNodes, kind: InstanceType, market: Market) -> Capacity:
        """How many nodes there are, and what declares them. kind: has no part in it."""
        if group.name == HEAD:
            return Single()
        if group.count is not None:
            return _fixed_size(group.count, market)
        spot = isinstance(market, Spot)
        return Elastic(
            least=_least(group),
            most=_most(group),
            gpu_load_percent=group.gpu_load or GPU_LOAD_PERCENT,
            load=LoadMetric(
                namespace=METRIC_NAMESPACE,
                name=METRIC,
                dimensions={"stack": self.stack, "group": group.name},  # groups of two stacks may have one name
            ),
            warmup_seconds=WARMUP_SECONDS,
            on_demand_base=_least(group) if isinstance(market, Spot) and market.fallback else 0,
            on_demand_percent=0 if spot else 100,
        )

    def image(self, kind: InstanceType) -> ImagePlan:
        """Canonical's newest one, or the one that the stack file records."""
        architecture = eks_nodes.architecture(kind)
        return ImagePlan(
            parameter=PARAMETER.format(DEBIAN_NAMES[architecture]),
            architecture=architecture,
            recorded=getattr(self.images, architecture),
        )


def subnet_name(kind: Kind, zone: str) -> str:
    return f"{kind}-{zone}"


def group_zones(spec: specs.AwsSpec, group: specs.AwsNodes) -> tuple[str, ...]:
    """The zones that a group spans."""
    return (group.zone,) if group.zone else spec.all_zones


def group_plan(spec: specs.AwsSpec, index: int, nodes: HostNodes | EksNodes, refusals: Refusals) -> AwsGroupPlan:
    """The plan of the group at that index of the stack file; what cannot be is noted at the key it is about."""
    group, here = spec.nodes[index], f"cluster.nodes[{index}]"
    kind = load().type(group.type)
    role: Literal["head", "worker"] = "head" if group.name == HEAD else "worker"
    efa = _wants_efa(group, kind)
    plain = nics.interfaces(ONE_CARD, fabric=False)
    interfaces = refusals.decided(f"{here}.fabric", partial(_interfaces, group, kind, efa), plain)
    market = _market(group.name, group.market)
    subnet_kind = _subnet_kind(spec, group, efa)
    zones = group_zones(spec, group)
    disks = nodes.disks
    return AwsGroupPlan(
        name=group.name,
        count=_least(group),
        gpu=kind.gpu,
        gpus_per_node=kind.gpu_count,
        fabric="efa" if any(each.interface_type != "interface" for each in interfaces) else "tcp",
        nodes=(),
        type=kind.name,
        role=role,
        market=market,
        capacity=nodes.capacity(group, kind, market),
        subnets=tuple(subnet_name(subnet_kind, zone) for zone in zones),
        security_group=group.name,
        public_address=subnet_kind == "public",
        interfaces=interfaces,
        fabric_gbps=kind.fabric_gbps,
        placement=refusals.decided(
            f"{here}.{'zone' if efa and len(zones) > 1 else 'placement'}",
            partial(_placement, group, market, zones=len(zones), efa=efa),
            Placement(strategy=None, reason="what was asked for cannot be"),
        ),
        image=nodes.image(kind),
        root=refusals.decided(f"{here}.root", partial(_root, group.root, role, disks), _root(None, role, disks)),
        scratch=scratch(disks=kind.disk_count or 0, disk_gb=kind.disk_gb or 0, mount=disks.scratch),
        mig=group.mig or (),
        metadata_hop_limit=nodes.metadata_hop_limit,
        tags={"gpufleet:group": group.name},
    )


def _least(group: specs.AwsNodes) -> int:
    return group.count or group.min or 0


def _most(group: specs.AwsNodes) -> int:
    return group.count or group.max or 0


def _wants_efa(group: specs.AwsNodes, kind: InstanceType) -> bool:
    """Preferred: where the type has it and there is a second node to speak to."""
    if group.fabric == "preferred":
        return kind.fabric == "efa" and _most(group) > 1 and group.name != HEAD
    return group.fabric == "required"


def _interfaces(group: specs.AwsNodes, kind: InstanceType, efa: bool) -> tuple[nics.Interface, ...]:
    if not efa:
        return nics.interfaces(ONE_CARD, fabric=False)
    if (
        kind.network_cards is None
        or kind.interfaces_per_card is None
        or kind.fabric_interfaces is None
        or kind.fabric_on_first_card is None
    ):
        raise NoFabricError(f"EC2's numbers of {kind.name}'s network cards are not known; choose another type")
    numbers = NetworkCards(
        cards=kind.network_cards,
        interfaces_per_card=kind.interfaces_per_card,
        efa_interfaces=kind.fabric_interfaces,
        first_card_efa=kind.fabric_on_first_card,
    )
    return nics.interfaces(numbers, fabric=True, layout=group.layout)


def _market(group: str, spec: markets.Market) -> Market:
    match spec:
        case markets.SpotMarket():
            return Spot(max_price_usd_per_hour=spec.max_price, fallback=spec.fallback)
        case markets.ReservationMarket():
            return Reservation(id=spec.id, group_arn=spec.placement_group)
        case markets.BlockMarket():
            return _block(group, spec)
        case markets.OnDemandMarket():
            return OnDemand()


def _block(group: str, spec: markets.BlockMarket) -> CapacityBlock:
    if spec.buy is None:
        return CapacityBlock(id=str(spec.id))
    sentence = f"buy {spec.buy.offering} for at most {spec.buy.usd_at_most:.12g} USD, never refunded"
    confirmed = spec.buy.confirm == sentence
    purchase = Purchase(
        name=f"{group}-block",
        hours=spec.buy.hours,
        usd_at_most=spec.buy.usd_at_most,
        sentence=sentence,
        confirmed=confirmed,
    )
    return CapacityBlock(id=spec.buy.offering, purchase=purchase)


def _fixed_size(nodes: int, market: Market) -> FixedSize:
    """Spot nodes are replaced as they are taken back; a fleet that is all or nothing never replaces any."""
    if isinstance(market, Spot):
        return FixedSize(nodes=nodes, fleet_type="maintain", capacity_type="spot")
    block = isinstance(market, CapacityBlock)
    return FixedSize(nodes=nodes, fleet_type="instant", capacity_type="capacity-block" if block else "on-demand")


def _subnet_kind(spec: specs.AwsSpec, group: specs.AwsNodes, efa: bool) -> Kind:
    """People reach a head from outside, and without one the nodes themselves."""
    has_head = any(each.name == HEAD for each in spec.nodes)
    if spec.access.ssh_from and (group.name == HEAD or not has_head):
        return "public"
    return "fabric" if efa else "private"


def _placement(group: specs.AwsNodes, market: Market, *, zones: int, efa: bool) -> Placement:
    return placement(
        MARKETS[type(market)],
        nodes=_most(group),
        zones=zones,
        fabric=efa,
        apart=group.placement == "apart",
        reservation_group_arn=market.group_arn if isinstance(market, Reservation) else None,
    )


def _root(spec: specs.Root | None, role: Literal["head", "worker"], disks: ImageDisks) -> Volume:
    need = VolumeNeed(size_gib=ROOT_GIB[role])
    if spec is not None:
        need = VolumeNeed(size_gib=spec.size_gib, iops=spec.iops, mib_per_second=spec.mib_per_second)
    return root_volume(need, device=disks.root_device, image_gib=disks.gib)
