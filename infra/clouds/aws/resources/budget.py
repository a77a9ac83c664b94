"""The monthly alarm: AWS Budgets on what carries the stack's tag.

Source: AWS Cost Management User Guide, "Budget filters" (a user's tag is written `user:<key>$<value>`, and must have
been activated as a cost allocation tag by whoever pays).
"""

from __future__ import annotations

from dataclasses import dataclass

from pulumi import ComponentResource, ResourceOptions
from pulumi_aws import budgets

from infra.clouds.aws.plan.model import BudgetPlan


@dataclass(frozen=True, kw_only=True)
class BudgetArgs:
    """What a budget needs. tag_value: of the tag by which costs are counted."""

    plan: BudgetPlan
    tag_value: str


class Budget(ComponentResource):
    """A monthly cost budget with a mail at each threshold."""

    def __init__(self, name: str, args: BudgetArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:aws:Budget", name, {}, opts)
        plan = args.plan
        budgets.Budget(
            f"{name}-monthly",
            budget_type="COST",
            time_unit="MONTHLY",
            limit_amount=f"{plan.monthly_usd:.2f}",
            limit_unit="USD",
            cost_filters=[{"name": "TagKeyValue", "values": [f"user:{plan.tag}${args.tag_value}"]}],
            notifications=[
                {
                    "comparison_operator": "GREATER_THAN",
                    "notification_type": "ACTUAL",
                    "threshold": percent,
                    "threshold_type": "PERCENTAGE",
                    "subscriber_email_addresses": list(plan.emails),
                }
                for percent in plan.thresholds_percent
            ],
            opts=ResourceOptions(parent=self),
        )
        self.register_outputs({})
