"""The reserved capacity that a group starts in: one that is there, or a Capacity Block that is bought with the stack.

Source: EC2 User Guide, "Purchase Capacity Blocks" (charged at once; can be neither changed nor cancelled).
"""

from __future__ import annotations

from pulumi import Input, ResourceOptions
from pulumi_aws import ec2

from infra.clouds.aws.plan.capacity import CapacityBlock, Market, Purchase, Reservation

PLATFORM = "Linux/UNIX"


def reservation_id(market: Market, opts: ResourceOptions) -> Input[str] | None:
    """The id of the capacity reservation, None without one.

    A purchase is protected: removed from the state, it would be bought once more.
    """
    match market:
        case CapacityBlock(purchase=Purchase() as purchase):
            protected = ResourceOptions.merge(opts, ResourceOptions(protect=True))
            return ec2.CapacityBlockReservation(
                purchase.name, capacity_block_offering_id=market.id, instance_platform=PLATFORM, opts=protected
            ).id
        case Reservation() | CapacityBlock():
            return market.id
        case _:
            return None
