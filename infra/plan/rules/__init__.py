"""Every rule of the preflight. A new file of rules is named here, and its rules run."""

from infra.plan.rules import budget, local, names, storage
from infra.plan.rules.registry import RULES, Rule, check

__all__ = ["RULES", "Rule", "budget", "check", "local", "names", "storage"]
