"""For each rule of AWS about prices and budgets, a cluster that it passes and one that it objects to."""

from __future__ import annotations

from clusters import group
from rule_cases import BLOCK, Changes

MAILS = ", ".join(f"ops{i}@example.com" for i in range(10))
CASES: dict[str, tuple[Changes, Changes, str, str, str]] = {
    "nodes-have-a-price": (
        {},
        {"region": "eu-west-1", "zone": "eu-west-1a"},
        "warning",
        "nodes[0].type",
        "no price of p4d.24xlarge is known in eu-west-1",
    ),
    "spot-would-cost-less": (
        {"nodes": group(market="{kind: spot, max_price: 21.9}")},
        {},
        "warning",
        "nodes[0].market",
        "spot would save 63% or more: 2.47 to 8.19 USD an hour (4 zones of us-east-1: skypilot-catalog v8",
    ),
    "block-is-paid-up-front": (
        {},
        {"nodes": group(market=BLOCK)},
        "info",
        "nodes[0].market",
        "was paid when the block was bought",
    ),
    "budget-has-somebody-to-tell": (
        {"budget": "{monthly: 70000, notify: [ops@example.com]}"},
        {"budget": "{monthly: 70000}"},
        "info",
        "budget",
        "name `notify`",
    ),
    "budget-tells-as-many-as-it-can": (
        {"budget": f"{{monthly: 70000, notify: [{MAILS}]}}"},
        {"budget": f"{{monthly: 70000, notify: [{MAILS}, eleventh@example.com]}}"},
        "error",
        "budget.notify",
        "11 addresses; a budget of AWS tells 10",
    ),
    "budget-holds": (
        {"budget": "{hourly: 88}"},
        {"budget": "{hourly: 87}"},
        "error",
        "budget.hourly",
        "the cluster costs up to 87.97 USD an hour; the budget is 87.00",
    ),
}
