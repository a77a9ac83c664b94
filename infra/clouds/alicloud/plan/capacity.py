"""How the nodes of a group are bought, and what declares them: two unions, told apart by `kind`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class OnDemand:
    """Paid by the second, as long as there is capacity."""

    kind: Literal["on-demand"] = "on-demand"


@dataclass(frozen=True, kw_only=True)
class Spot:
    """Spare capacity at a price that moves, taken back with about five minutes' notice.

    max_price_cny_per_hour: of one node, None for the market's price (SpotAsPriceGo, at most the on-demand price).
    fallback: what is bought where there is no spot capacity, None to wait. protected_hours: `spot_duration`.
    """

    kind: Literal["spot"] = "spot"
    max_price_cny_per_hour: float | None
    fallback: Literal["on-demand"] | None
    protected_hours: Literal[0, 1]

    @property
    def strategy(self) -> str:
        """As ECS spells it."""
        return "SpotAsPriceGo" if self.max_price_cny_per_hour is None else "SpotWithPriceLimit"


@dataclass(frozen=True, kw_only=True)
class PrivatePool:
    """Capacity that is held: an elasticity assurance or a capacity reservation, targeted by its id."""

    kind: Literal["reservation"] = "reservation"
    id: str


@dataclass(frozen=True, kw_only=True)
class Assurance:
    """An elasticity assurance is bought with the stack: paid at once, never given back.

    name: of the resource that buys it. sentence: the text that confirms the purchase; confirmed: the stack file has it.
    """

    kind: Literal["assurance"] = "assurance"
    name: str
    months: int
    sentence: str
    confirmed: bool


Market = OnDemand | Spot | PrivatePool | Assurance


@dataclass(frozen=True, kw_only=True)
class Single:
    """One machine that stays itself: an ECS instance."""

    kind: Literal["single"] = "single"


@dataclass(frozen=True, kw_only=True)
class Machines:
    """So many ECS instances, declared one by one: the only resource that takes two eRDMA interfaces, or an HPC cluster.

    The named exception to "a group costs the same to plan for any size".
    """

    kind: Literal["machines"] = "machines"
    nodes: int


# What a scaling group starts its nodes from. A launch template can require IMDSv2 and name a deployment set, a scaling
# configuration can ask for one eRDMA interface and for a private pool (pulumi-alicloud 4.0.0); neither can do both.
Form = Literal["template", "configuration"]


@dataclass(frozen=True, kw_only=True)
class FixedSize:
    """A fixed number of nodes: one scaling group that maintains it."""

    kind: Literal["fleet"] = "fleet"
    nodes: int
    form: Form


@dataclass(frozen=True, kw_only=True)
class Elastic:
    """Between `least` and `most` nodes, by the load of their GPUs: one scaling group with target tracking.

    metric: Auto Scaling's own, percent, the mean over the group; CloudMonitor's agent on the nodes measures it.
    """

    kind: Literal["elastic"] = "elastic"
    form: Form
    least: int
    most: int
    gpu_load_percent: float
    metric: str
    warmup_seconds: int


@dataclass(frozen=True, kw_only=True)
class Mix:
    """So many spot nodes of several types: one auto provisioning group that maintains them.

    types: in order of preference. max_price_cny_per_hour: of a node of any of them. Interrupted nodes are
    ended, and all of them with the group: by default they would be stopped, their disks billed, and left behind.
    """

    kind: Literal["mix"] = "mix"
    nodes: int
    types: tuple[str, ...]
    max_price_cny_per_hour: float


@dataclass(frozen=True, kw_only=True)
class ManagedPool:
    """So many nodes of a cluster of ACK: one node pool. taints: by key the value of those that keep pods away."""

    kind: Literal["pool"] = "pool"
    nodes: int
    labels: Mapping[str, str]
    taints: Mapping[str, str]
    image_type: Literal["AliyunLinux3"] = "AliyunLinux3"


Capacity = Single | Machines | FixedSize | Elastic | Mix | ManagedPool
