"""The eRDMA interfaces (ERIs) of a node, by rule from what ECS says of its type; no type is named here.

Sources: ECS API, RunInstances (a primary interface sits on card 0; an ERI without a number of queue pairs takes all of
them, and no second one fits beside it) and DescribeInstanceTypes (EriQuantity, QueuePairNumber); ECS User Guide, "eRDMA
on GPU-accelerated instances" (two ERIs of a machine with two cards belong on different cards: one card carries half).
"""

from __future__ import annotations

from dataclasses import dataclass

from infra.catalog import InstanceType
from infra.plan.layout import NoFabricError

MOST_DECLARED = 2  # a primary interface and one more: pulumi-alicloud 4.0.0, ecs.Instance


@dataclass(frozen=True, kw_only=True)
class Eri:
    """One interface in RDMA mode. queue_pairs: None where the only one takes all."""

    network_card_index: int
    queue_pairs: int | None


def interfaces(kind: InstanceType, queue_pairs: int | None) -> tuple[Eri, ...]:
    """The ERIs of a node, primary first. queue_pairs: of each, where there are two. Raises NoFabricError."""
    if kind.fabric != "erdma":
        raise NoFabricError(
            f"the fabric is required but {kind.name} has no eRDMA; choose one that has, such as ecs.ebmgn7ex.32xlarge "
            "(A100) or ecs.ebmgn8v.48xlarge (H20), or drop `fabric`"
        )
    number = kind.fabric_interfaces
    if number is None:
        raise NoFabricError(
            f"how many eRDMA interfaces {kind.name} has is not known; choose another type, or drop `fabric`"
        )
    if number > MOST_DECLARED:
        raise NoFabricError(f"{kind.name} has {number} eRDMA interfaces, and a stack can declare {MOST_DECLARED}")
    if number == 1:
        return (Eri(network_card_index=0, queue_pairs=None),)
    if queue_pairs is None:
        raise NoFabricError(
            f"{kind.name} has {number} eRDMA interfaces, and the first would take all queue pairs: say `queue_pairs`, "
            f"the QueuePairNumber of `aliyun ecs DescribeInstanceTypes --InstanceTypes.1 {kind.name}`"
        )
    return tuple(Eri(network_card_index=card, queue_pairs=queue_pairs) for card in range(number))
