"""Policy: rules over rendered resources, for the plan, for tests and for the engine's policy pack.

A rule is a plain function over one resource, or over all of them where one alone is not enough. It reads Pulumi's wire
names and never calls a cloud; what it cannot read (an unknown, a secret) it does not take for safe.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module

from infra import registry
from infra.plan.model import Finding
from infra.policy import rule
from infra.policy.rule import Resource, ResourceRule, Row, Rule, Stack, StackRule, summary

__all__ = ["Resource", "ResourceRule", "Rule", "Stack", "StackRule", "check", "rules", "summary"]

EVERY_CLOUD = ("providers", "tags", "user_data")


def rules() -> Mapping[str, Rule]:
    """The rules of all clouds, by name. Importing a module registers its rules."""
    every_cloud = (f"{__name__}.{name}" for name in EVERY_CLOUD)
    for module in sorted(
        (*every_cloud, *(module for name in registry.CLOUDS for module in registry.cloud(name).policy))
    ):
        import_module(module)
    return rule.RULES


def check(rows: Sequence[Row | Resource], ceiling_usd_per_hour: float | None = None) -> tuple[Finding, ...]:
    """What every rule finds in the resources of a stack, in the rules' order."""
    resources = (row if isinstance(row, Resource) else Resource.of(row) for row in rows)
    stack = Stack(tuple(resources), ceiling_usd_per_hour)
    return tuple(finding for each in rules().values() for finding in each.findings(stack))
