"""The preflight: which files of rules are about which cloud. A new file is named here, and its rules run."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from infra.plan.plan import Finding, Plan
from infra.plan.rules.registry import RULES, Rule
from infra.spec.cluster import Cluster

EVERY = ("budget", "charts", "mig", "names", "storage")
RENTED = ("drivers", "load", "prices")
FILES = {
    "local": ("local",),
    "machines": ("machines",),
    "kubernetes": ("kubernetes",),
    "aws": ("aws_access", "aws_eks", "aws_market", "aws_nodes", "aws_price", "aws_storage", *RENTED),
    "alicloud": ("alicloud_access", "alicloud_market", "alicloud_nodes", "alicloud_storage", *RENTED),
}


def check(spec: Cluster, plan: Plan) -> tuple[Finding, ...]:
    """What every rule that is about such a plan finds, in the order of files and rules.

    Only the files of its cloud are loaded: the types of all clouds take longer than all else that `status` does.
    """
    return tuple(
        finding
        for file in sorted((*EVERY, *FILES[plan.cloud]))
        for rule in _rules(file)
        if isinstance(plan, rule.kind)
        for finding in rule.findings(spec, plan)
    )


def every() -> Mapping[str, Rule]:
    """The rules of all clouds, by name."""
    for file in (*EVERY, *(file for files in FILES.values() for file in files)):
        _rules(file)
    return RULES


def _rules(file: str) -> list[Rule]:
    module = import_module(f"{__name__}.{file}")
    return [rule for rule in RULES.values() if rule.violations.__module__ == module.__name__]


__all__ = ["Rule", "check", "every"]
