"""Rules about what is known of a bill from AWS. A price that is not known is said, never guessed."""

from __future__ import annotations

from collections.abc import Iterator

from infra.catalog import load
from infra.checks.rule import Violation, rule
from infra.clouds.aws.plan.capacity import CapacityBlock, OnDemand
from infra.clouds.aws.plan.model import AwsPlan
from infra.clouds.aws.plan.pricing import on_demand
from infra.clouds.aws.spec.cluster import AwsSpec

MOST_MAILS = 10


@rule("block-is-paid-up-front", AwsPlan, level="info")
def block_is_paid_up_front(_: AwsSpec, plan: AwsPlan) -> Iterator[Violation]:
    """The price of a capacity block stands in its offer (EC2 User Guide, Capacity Blocks pricing and billing)."""
    for i, group in enumerate(plan.groups):
        if isinstance(group.market, CapacityBlock) and group.market.purchase is None:
            yield f"cluster.nodes[{i}].market", "was paid when the block was bought: it is no part of the price here"


@rule("spot-would-cost-less", AwsPlan, level="warning")
def spot_would_cost_less(_: AwsSpec, plan: AwsPlan) -> Iterator[Violation]:
    """Spot sells below the on-demand price, and is taken back with two minutes' notice (EC2 User Guide, Spot)."""
    for i, group in enumerate(plan.groups):
        price, seen = on_demand(group.type, plan.region), load().spot_prices(group.type, plan.region)
        if not isinstance(group.market, OnDemand) or group.role == "head" or price is None or not seen:
            continue
        usd = sorted(each.usd_per_hour for each in seen)
        saving = 1 - usd[-1] / price.on_demand_per_hour
        if saving > 0:
            where = f"{len(usd)} zones of {plan.region}: {seen[0].source}, {seen[0].date}"
            message = f"spot would save {saving:.0%} or more: {usd[0]:.2f} to {usd[-1]:.2f} USD an hour ({where})"
            yield f"cluster.nodes[{i}].market", message


@rule("budget-tells-as-many-as-it-can", AwsPlan)
def budget_tells_as_many_as_it_can(_: AwsSpec, plan: AwsPlan) -> Iterator[Violation]:
    """A notification has at most ten addresses (AWS Cost Management User Guide, Quotas and restrictions)."""
    if plan.budget is not None and (count := len(plan.budget.emails)) > MOST_MAILS:
        yield "cluster.budget.notify", f"{count} addresses; a budget of AWS tells {MOST_MAILS}: name a mailing list"
