"""Every rule of the preflight. A new file of rules is named here, and its rules run."""

from infra.plan.rules import (
    alicloud_access,
    alicloud_market,
    alicloud_nodes,
    aws_access,
    aws_eks,
    aws_market,
    aws_nodes,
    aws_price,
    aws_storage,
    budget,
    drivers,
    local,
    machines,
    mig,
    names,
    storage,
)
from infra.plan.rules.registry import RULES, Rule, check

__all__ = [
    "RULES",
    "Rule",
    "alicloud_access",
    "alicloud_market",
    "alicloud_nodes",
    "aws_access",
    "aws_eks",
    "aws_market",
    "aws_nodes",
    "aws_price",
    "aws_storage",
    "budget",
    "check",
    "drivers",
    "local",
    "machines",
    "mig",
    "names",
    "storage",
]
