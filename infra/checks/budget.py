"""Rules about what a cluster may cost."""

from __future__ import annotations

from collections.abc import Iterator

from infra.checks.rule import Violation, rule
from infra.plan.model import Plan
from infra.spec.cluster import Cluster


@rule("budget-holds", Plan)
def budget_holds(spec: Cluster, plan: Plan) -> Iterator[Violation]:
    """The dearest hour, and a month of such hours, stay within what the stack file allows."""
    if spec.budget is None:
        return
    for key, cost, limit in (
        ("hourly", plan.cost.hourly_max, spec.budget.hourly),
        ("monthly", plan.cost.monthly_max, spec.budget.monthly),
    ):
        if limit is not None and cost > limit:
            period = "an hour" if key == "hourly" else "a month"
            message = f"the cluster costs up to {cost:,.2f} {plan.cost.currency} {period}; the budget is {limit:,.2f}"
            yield f"cluster.budget.{key}", message
