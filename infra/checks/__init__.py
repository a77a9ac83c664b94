"""Checks of a plan before anything is declared: those for every cloud are here, the others in the clouds' folders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module

from infra import registry
from infra.checks.rule import RULES, Rule
from infra.plan.model import Finding, Plan
from infra.spec.cluster import Cluster

EVERY_CLOUD = tuple(f"{__name__}.{name}" for name in ("budget", "charts", "mig", "names", "storage"))


def check(spec: Cluster, plan: Plan) -> tuple[Finding, ...]:
    """What every rule about such a plan finds, in the order of files and rules.

    Only the files of its cloud are loaded: the types of all clouds take longer than all else that `status` does.
    """
    return tuple(
        finding
        for module in _in_order((*registry.cloud(plan.cloud).checks, *EVERY_CLOUD))
        for rule in _rules(module)
        if isinstance(plan, rule.kind)
        for finding in rule.findings(spec, plan)
    )


def every() -> Mapping[str, Rule]:
    """The rules of all clouds, by name."""
    for module in (*EVERY_CLOUD, *(module for name in registry.CLOUDS for module in registry.cloud(name).checks)):
        _rules(module)
    return RULES


def _in_order(modules: Iterable[str]) -> list[str]:
    """The cloud's own files first, then those that clouds share, by name."""
    return sorted(modules, key=lambda module: module if module.startswith(f"{__name__}.") else "")


def _rules(name: str) -> list[Rule]:
    module = import_module(name)
    return [rule for rule in RULES.values() if rule.violations.__module__ == module.__name__]


__all__ = ["Rule", "check", "every"]
