"""How the nodes of a group are bought, and how many there are: two unions, told apart by `kind`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from infra.plan.model import LoadMetric


@dataclass(frozen=True, kw_only=True)
class OnDemand:
    """Paid by the hour, as long as there is capacity."""

    kind: Literal["on-demand"] = "on-demand"


@dataclass(frozen=True, kw_only=True)
class Spot:
    """Spare capacity at a price that moves, taken back with two minutes' notice.

    max_price_usd_per_hour: of one node, None for the on-demand price. fallback: what to buy where there is no spot
    capacity (a gang: `up` buys it instead; an elastic group: its `least` nodes), None to wait. strategy: of a scaling
    group. interruption, request: the only pair that a placement group allows.
    """

    kind: Literal["spot"] = "spot"
    max_price_usd_per_hour: float | None
    fallback: Literal["on-demand"] | None
    strategy: Literal["price-capacity-optimized"] = "price-capacity-optimized"
    interruption: Literal["terminate"] = "terminate"
    request: Literal["one-time"] = "one-time"


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """An On-Demand Capacity Reservation that exists, targeted by its id (`cr-…`).

    group_arn: the cluster placement group of the reservation, None without one. The template names the id, and no
    preference.
    """

    kind: Literal["reservation"] = "reservation"
    id: str
    group_arn: str | None


@dataclass(frozen=True, kw_only=True)
class Purchase:
    """A Capacity Block is bought with the stack: paid at once, never given back.

    name: of the resource that buys it. hours: its length. sentence: the text that confirms the purchase; confirmed: the
    stack file has it.
    """

    name: str
    hours: int
    usd_at_most: float
    sentence: str
    confirmed: bool


@dataclass(frozen=True, kw_only=True)
class CapacityBlock:
    """A Capacity Block, targeted by its reservation's id (`cr-…`); one that is still to be bought, by its offer's.

    The template's market type is `capacity-block`, without spot options. Its nodes are terminated from 11:00 UTC of the
    block's last day on.
    """

    kind: Literal["capacity-block"] = "capacity-block"
    id: str
    purchase: Purchase | None = None


Market = OnDemand | Spot | Reservation | CapacityBlock


@dataclass(frozen=True, kw_only=True)
class Single:
    """One machine that stays itself: an EC2 instance from the group's launch template."""

    kind: Literal["single"] = "single"


@dataclass(frozen=True, kw_only=True)
class FixedSize:
    """So many nodes at once: one EC2 Fleet, whose instances end with it (`terminate_instances`).

    fleet_type: instant is all or nothing (`min_target_capacity` = `nodes`, one zone, one type) and is never refilled;
    maintain replaces a node that was interrupted or is unhealthy. capacity_type: DefaultTargetCapacityType; the
    template of a spot fleet has no market options, the fleet's own spot options say how.
    """

    kind: Literal["gang"] = "gang"
    nodes: int
    fleet_type: Literal["instant", "maintain"]
    capacity_type: Literal["on-demand", "spot", "capacity-block"]


@dataclass(frozen=True, kw_only=True)
class Elastic:
    """Between `least` and `most` nodes, by the load of their GPUs: one scaling group with target tracking.

    It begins with `least`. load: the nodes' own metric, DCGM's GPU utilisation. on_demand_base and on_demand_percent:
    of a mixed instances policy (`on_demand_percentage_above_base_capacity`).
    """

    kind: Literal["elastic"] = "elastic"
    least: int
    most: int
    gpu_load_percent: float
    load: LoadMetric
    warmup_seconds: int
    on_demand_base: int
    on_demand_percent: int


ImageType = Literal["AL2023_x86_64_NVIDIA", "AL2023_ARM_64_NVIDIA", "AL2023_x86_64_STANDARD", "AL2023_ARM_64_STANDARD"]


@dataclass(frozen=True, kw_only=True)
class ManagedPool:
    """So many nodes of a cluster of EKS: one managed node group.

    capacity_type: EKS buys spot by itself, at up to the on-demand price. pods: the most on a node, kubelet's maxPods.
    labels: of the nodes. taints: by key the value of those that keep pods without a toleration away (NO_SCHEDULE).
    update: MINIMAL ends old nodes before it starts new ones, for capacity of which there is no more.
    """

    kind: Literal["managed"] = "managed"
    nodes: int
    capacity_type: Literal["ON_DEMAND", "SPOT", "CAPACITY_BLOCK"]
    image_type: ImageType
    pods: int
    labels: Mapping[str, str]
    taints: Mapping[str, str]
    update: Literal["DEFAULT", "MINIMAL"]


Capacity = Single | FixedSize | Elastic | ManagedPool
