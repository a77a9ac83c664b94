"""What no stack may declare: rules over rendered resources, for the plan, for tests and for the engine's policy pack.

A rule is a plain function over one resource, or over all of them where only together they tell. It reads Pulumi's wire
names and never asks a cloud; what it cannot read (an unknown, a secret) it does not take for safe.
"""

from importlib import import_module

from infra import registry
from infra.policy.rule import RULES, Resource, ResourceRule, Rule, Stack, StackRule, check, summary

__all__ = ["RULES", "Resource", "ResourceRule", "Rule", "Stack", "StackRule", "check", "summary"]

EVERY_CLOUD = ("cost", "credentials", "deletion", "metadata", "providers", "ssh", "tags", "user_data")

# Importing them registers their rules. The order is that of the pack.
for _module in sorted(
    (
        *(f"{__name__}.{name}" for name in EVERY_CLOUD),
        *(module for name in registry.CLOUDS for module in registry.cloud(name).policy),
    )
):
    import_module(_module)
