"""How nodes are bought on Alibaba Cloud, as the stack file spells it: a union discriminated by `kind`."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, Strict

from infra.spec.cluster import Section
from infra.spec.fields import Sentence, like


def _three_decimals(price: float) -> float:
    """ECS API, RunInstances, SpotPriceLimit: at most three decimals."""
    if Decimal(str(price)).normalize().as_tuple().exponent < -3:  # pyright: ignore[reportOperatorIssue]
        raise ValueError(f"{price} has more than three decimals, and Alibaba Cloud takes three")
    return price


# An elasticity assurance, or a capacity reservation.
PoolId = Annotated[
    str, AfterValidator(like(r"(eap|crp)-[0-9a-z]{8,32}", "private pool such as eap-bp67acfmxazb40000000"))
]
CnyPerHour = Annotated[float, Strict(), Field(gt=0, allow_inf_nan=False), AfterValidator(_three_decimals)]
Months = Annotated[int, Strict(), Field(ge=1, le=9)]


class OnDemandMarket(Section):
    """Paid by the second (PostPaid)."""

    kind: Literal["on-demand"]


class SpotMarket(Section):
    """Spare capacity. max_price: CNY an hour for one node, None for the market's, at most the on-demand price.

    protected_hour: nobody takes the node back in its first hour, for which it costs about a tenth more; pools of ACK
    have none.
    """

    kind: Literal["spot"]
    max_price: CnyPerHour | None = None
    fallback: Literal["on-demand"] | None = None
    protected_hour: Annotated[bool, Strict()] = True


class PoolMarket(Section):
    """A private pool that exists, by its id (Target): its capacity or nothing."""

    kind: Literal["reservation"]
    id: PoolId


class AssuranceMarket(Section):
    """An elasticity assurance that `up` buys: a fee on top of the nodes' price, and never refunded.

    confirm: the sentence that agrees to it; `plan` names it.
    """

    kind: Literal["assurance"]
    months: Months
    confirm: Sentence = ""


Market = Annotated[OnDemandMarket | SpotMarket | PoolMarket | AssuranceMarket, Field(discriminator="kind")]
