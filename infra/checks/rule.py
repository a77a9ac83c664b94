"""Preflight rules: each states one fact from one source; one run reports whatever all of them find."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import UnionType
from typing import Any, Literal, TypeVar

from infra.plan.model import Finding, Plan
from infra.spec.cluster import Cluster

Violation = tuple[str, str]  # the stack file's key path, and the message
Level = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class Rule:
    """A rule of the clouds whose plans are of this kind. violations: (spec, plan) -> what is wrong."""

    name: str
    kind: type[Plan] | UnionType
    violations: Callable[[Any, Any], Iterator[Violation]]
    level: Level

    def findings(self, spec: Cluster, plan: Plan) -> Iterator[Finding]:
        for path, message in self.violations(spec, plan):
            yield Finding(level=self.level, rule=self.name, path=path, message=message)


RULES: dict[str, Rule] = {}


Stated = TypeVar("Stated", bound=Callable[..., Iterator[Violation]])


def rule(name: str, kind: type[Plan] | UnionType, level: Level = "error") -> Callable[[Stated], Stated]:
    """Registers a function (spec, plan) -> violations as the rule `name` for plans of this kind.

    level: error for what cannot work, warning for what wastes money or surprises, info for what cannot be checked.
    """

    def register(function: Stated) -> Stated:
        if name in RULES:
            raise ValueError(f"two rules are named {name}")
        RULES[name] = Rule(name, kind, function, level)
        return function

    return register
