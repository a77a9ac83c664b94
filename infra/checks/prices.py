"""Rules about what rented things cost. A price that is not known is said, never guessed."""

from __future__ import annotations

from collections.abc import Iterator

from infra.checks.rule import Violation, rule
from infra.plan.cloud_model import CloudPlan
from infra.spec.cloud import Zoned


@rule("nodes-have-a-price", CloudPlan, level="warning")
def nodes_have_a_price(_: Zoned, plan: CloudPlan) -> Iterator[Violation]:
    """A group without a price in the tables counts nothing in the plan's price, and no budget holds it."""
    for i, group in enumerate(plan.groups):
        if group.paid_up_front:
            continue
        if next(item.hourly for item in plan.cost.items if item.name == group.name) is None:
            yield f"cluster.nodes[{i}].type", f"no price of {group.type} is known in {plan.region}: it counts as 0"


@rule("items-have-a-price", CloudPlan, level="info")
def items_have_a_price(_: Zoned, plan: CloudPlan) -> Iterator[Violation]:
    """What no source gave a price for is named without one."""
    groups = {group.name for group in plan.groups}
    if unpriced := [item.name for item in plan.cost.items if item.hourly is None and item.name not in groups]:
        yield "cluster", f"the price leaves out, since the tables have none: {'; '.join(unpriced)}"


@rule("budget-has-somebody-to-tell", CloudPlan, level="info")
def budget_has_somebody_to_tell(spec: Zoned, plan: CloudPlan) -> Iterator[Violation]:
    """A budget notifies those who are named (AWS Budgets API, Subscriber); without one it is checked here alone."""
    if spec.budget is not None and spec.budget.monthly is not None and plan.budget is None:
        yield "cluster.budget", "nobody is told when the month nears its limit; name `notify`"
