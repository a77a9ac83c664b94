"""Which placement group a node group is launched into, if any.

Sources: EC2 User Guide, "Placement strategies", "Placement group rules and limitations", "Use Capacity Reservations
with cluster placement groups" and "Elastic Fabric Adapter" (EFA does not cross zones); EC2 API, CreatePlacementGroup
and CreateCapacityReservation (PlacementGroupArn); ParallelCluster's validators (no group with a capacity block).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from infra.plan.layout import PlacementError

Market = Literal["on-demand", "spot", "reservation", "capacity-block"]
Strategy = Literal["cluster", "partition"]

MOST_PARTITIONS = 7  # of a partition group in a zone


@dataclass(frozen=True, kw_only=True)
class Placement:
    """The placement of one node group.

    strategy: None means no group at all. existing_arn: the group to join; None with a strategy means that the stack
    makes one of its own. partitions: of a partition group, else None. In any group, spot nodes can only be terminated
    on interruption, not stopped or hibernated.
    """

    strategy: Strategy | None
    existing_arn: str | None = None
    partitions: int | None = None
    reason: str


def placement(
    market: Market,
    *,
    nodes: int,
    zones: int,
    fabric: bool,
    apart: bool = False,
    reservation_group_arn: str | None = None,
) -> Placement:
    """Where the nodes of a group stand to each other.

    zones: how many availability zones the group spans. apart: the nodes must not fall together (with a rack, with its
    power), where their capacity is not reserved and they need no fabric. reservation_group_arn: the cluster group that
    the capacity reservation was made in, if it was.

    Raises PlacementError.
    """
    if fabric and zones != 1:
        raise PlacementError(
            f"the fabric does not cross availability zones, and this group spans {zones}; name one zone"
        )
    if apart and (fabric or market not in ("on-demand", "spot")):
        raise PlacementError(
            "nodes of a fabric or of reserved capacity stand where they stand, and cannot be asked apart"
        )
    if reservation_group_arn is not None and market != "reservation":
        raise PlacementError(
            f"a reservation's placement group is given, but the market is {market}; buy from the reservation"
        )
    if market == "capacity-block":
        return Placement(strategy=None, reason="a capacity block stands in one UltraCluster already and takes no group")
    if market == "reservation":
        return _reserved(reservation_group_arn)
    if fabric:
        return Placement(strategy="cluster", reason="the fabric is fastest between machines that stand close together")
    if apart:
        partitions = min(nodes, MOST_PARTITIONS)
        return Placement(strategy="partition", partitions=partitions, reason="machines of two partitions share no rack")
    return Placement(strategy=None, reason="without a fabric a group gains nothing and makes capacity harder to get")


def _reserved(group_arn: str | None) -> Placement:
    """A reservation matches only launches into the very group that it was made in, and none other."""
    if group_arn is None:
        return Placement(
            strategy=None, reason="the reservation was made outside any group: one would miss its capacity"
        )
    return Placement(strategy="cluster", existing_arn=group_arn, reason="the reservation was made in this group")
