"""How nodes are bought on AWS, as the stack file spells it: a union discriminated by `kind`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, Strict, model_validator

from infra.spec.cluster import Section
from infra.spec.errors import ContradictionError
from infra.spec.fields import Sentence, like

HEX = r"([0-9a-f]{8}|[0-9a-f]{17})"
GROUP_ARN = r"arn:aws:ec2:[a-z0-9-]+:\d{12}:placement-group/[\w.-]+"


def _block_hours(hours: int) -> int:
    """EC2 API, DescribeCapacityBlockOfferings."""
    days, rest = divmod(hours, 24)
    if rest or not (1 <= days <= 14 or (days <= 182 and days % 7 == 0)):
        raise ValueError(f"{hours} is no length of a block: whole days up to 14, then whole weeks up to 26, in hours")
    return hours


ReservationId = Annotated[str, AfterValidator(like(f"cr-{HEX}", "capacity reservation such as cr-0123456789abcdef0"))]
BlockHours = Annotated[int, Strict(), AfterValidator(_block_hours)]
OfferingId = Annotated[
    str, AfterValidator(like(r"cb-[0-9a-z]{17}", "offer of a capacity block such as cb-0123456789abcdef0"))
]
GroupArn = Annotated[
    str,
    AfterValidator(like(GROUP_ARN, "placement group's ARN (arn:aws:ec2:<region>:<account>:placement-group/<name>)")),
]
UsdPerHour = Annotated[float, Strict(), Field(gt=0, allow_inf_nan=False)]


class OnDemandMarket(Section):
    """Paid by the hour."""

    kind: Literal["on-demand"]


class SpotMarket(Section):
    """Spare capacity. max_price: US dollars an hour for one node."""

    kind: Literal["spot"]
    max_price: UsdPerHour | None = None
    fallback: Literal["on-demand"] | None = None


class ReservationMarket(Section):
    """A capacity reservation that exists. placement_group: the ARN of the cluster group it was made in, if in one."""

    kind: Literal["reservation"]
    id: ReservationId
    placement_group: GroupArn | None = None


class BlockPurchase(Section):
    """An offer to buy, found with `aws ec2 describe-capacity-block-offerings`. It is paid at once, and never refunded.

    hours: how long the offer is. usd_at_most: what it may cost altogether. confirm: the sentence that says so; `plan`
    names it.
    """

    offering: OfferingId
    hours: BlockHours
    usd_at_most: Annotated[float, Strict(), Field(gt=0, allow_inf_nan=False)]
    confirm: Sentence = ""


class BlockMarket(Section):
    """A capacity block: one that was bought (`id`), or one that `up` buys (`buy`)."""

    kind: Literal["block"]
    id: ReservationId | None = None
    buy: BlockPurchase | None = None

    @model_validator(mode="after")
    def _one_block(self) -> BlockMarket:
        if self.id is None and self.buy is None:
            raise ContradictionError([(("id",), "is missing; or name an offer to `buy`")])
        if self.id is not None and self.buy is not None:
            raise ContradictionError([(("buy",), "cannot stand beside `id`: the block was bought already")])
        return self


Market = Annotated[OnDemandMarket | SpotMarket | ReservationMarket | BlockMarket, Field(discriminator="kind")]
