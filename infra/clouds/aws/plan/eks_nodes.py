"""The nodes of a cluster of EKS, decided: one managed node group for each group of the stack file.

Sources: EKS API, CreateNodegroup (amiType, capacityType) and NodegroupUpdateConfig; EKS User Guide, "Retrieve
recommended Amazon Linux AMI IDs", "Customize managed nodes with launch templates" and "Create a managed node group with
Capacity Blocks for ML"; amazon-eks-ami, nodeadm (maxPods, and local disks as one RAID 0 below /mnt/k8s-disks);
amazon-vpc-cni-k8s, docs/eni-and-ip-target.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from infra.catalog import InstanceType
from infra.clouds.aws.plan.capacity import CapacityBlock, ImageType, ManagedPool, Market, OnDemand, Reservation, Spot
from infra.clouds.aws.plan.model import ImagePlan
from infra.clouds.aws.plan.volumes import ImageDisks
from infra.clouds.aws.spec.cluster import AwsNodes

# EKS's images of Amazon Linux 2023; nodeadm joins local disks in a stripe, and keeps containers and pods on it.
DISKS = ImageDisks(root_device="/dev/xvda", gib=20, scratch="/mnt/k8s-disks/0")
PARAMETER = "/aws/service/eks/optimized-ami/{}/amazon-linux-2023/{}/{}/recommended/image_id"

# As many pods with an address as the smallest type of the tables can have: two interfaces with ten addresses, one of
# them the interface's own. The network plug-in keeps exactly so many for a node; by default it takes whole interfaces.
PODS_PER_NODE = 18
POD_ADDRESSES_PER_NODE = PODS_PER_NODE + 1  # and the second interface's own

CAPACITY_TYPES: dict[type[Market], Literal["ON_DEMAND", "SPOT", "CAPACITY_BLOCK"]] = {
    OnDemand: "ON_DEMAND",
    Reservation: "ON_DEMAND",
    Spot: "SPOT",
    CapacityBlock: "CAPACITY_BLOCK",
}
IMAGE_TYPES: dict[tuple[Literal["x86_64", "arm64"], Literal["standard", "nvidia"]], ImageType] = {
    ("x86_64", "nvidia"): "AL2023_x86_64_NVIDIA",
    ("arm64", "nvidia"): "AL2023_ARM_64_NVIDIA",
    ("x86_64", "standard"): "AL2023_x86_64_STANDARD",
    ("arm64", "standard"): "AL2023_ARM_64_STANDARD",
}
GROUP_LABEL, MARKET_LABEL = "gpufleet.io/group", "gpufleet.io/market"

# Kubernetes' custom for GPU nodes: only what tolerates it comes there, which plug-ins and jobs do, and DNS does not.
GPU_TAINT = {"nvidia.com/gpu": "present"}


@dataclass(frozen=True, kw_only=True)
class EksNodes:
    """What makes the groups' nodes: managed node groups of EKS.

    disks: of the machine image. metadata_hop_limit: pods must not reach it, they would take on the node's role.
    mounts_storage: pods mount, nodes do not.
    """

    version: str
    disks: ClassVar[ImageDisks] = DISKS
    metadata_hop_limit: ClassVar[int] = 1
    mounts_storage: ClassVar[bool] = False

    def capacity(self, group: AwsNodes, kind: InstanceType, market: Market) -> ManagedPool:
        """So many nodes of a type. No GPUs are spare to start new nodes beside old ones: an update ends these first."""
        return ManagedPool(
            nodes=group.count or group.max or 0,
            capacity_type=CAPACITY_TYPES[type(market)],
            image_type=IMAGE_TYPES[architecture(kind), _variant(kind)],
            pods=PODS_PER_NODE,
            labels={GROUP_LABEL: group.name, MARKET_LABEL: market.kind},
            taints=GPU_TAINT if kind.gpu else {},
            update="MINIMAL" if kind.gpu else "DEFAULT",
        )

    def image(self, kind: InstanceType) -> ImagePlan:
        """What EKS starts the nodes from; it chooses by itself, newest first, when the group is made."""
        chosen = architecture(kind)
        parameter = PARAMETER.format(self.version, chosen, _variant(kind))
        return ImagePlan(parameter=parameter, architecture=chosen, recorded=None)


def architecture(kind: InstanceType) -> Literal["x86_64", "arm64"]:
    return "arm64" if kind.cpu_arch == "arm64" else "x86_64"


def _variant(kind: InstanceType) -> Literal["standard", "nvidia"]:
    return "nvidia" if kind.gpu else "standard"
