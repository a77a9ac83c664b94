"""The shape of a policy rule, and how all of them are run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from infra.plan.plan import Finding

Violation = tuple[str, str]  # the input's path below the resource, and the message
Row = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Resource:
    """A rendered resource. inputs: wire names, plain values. references: which URNs each input was made of."""

    type: str
    name: str
    urn: str = ""
    custom: bool = True
    inputs: Mapping[str, Any] = field(default_factory=dict)
    references: Mapping[str, Sequence[str]] = field(default_factory=dict)
    provider: str = ""

    @classmethod
    def of(cls, row: Row) -> Resource:
        """From a row of the plan's document."""
        return cls(
            type=row["type"],
            name=row["name"],
            urn=row["urn"],
            custom=row["custom"],
            inputs=row["inputs"],
            references=row["property_dependencies"],
            provider=row["provider"],
        )


@dataclass(frozen=True)
class Stack:
    """All resources that are declared together."""

    resources: tuple[Resource, ...]

    def of(self, *types: str) -> Iterator[Resource]:
        return (resource for resource in self.resources if resource.type in types)

    def named(self, urn: str) -> Resource | None:
        """The resource with this URN, None for a URN outside the stack."""
        return next((resource for resource in self.resources if urn and resource.urn == urn), None)

    def about(self, resource: Resource, kind: str, key: str) -> Iterator[Resource]:
        """The resources of a type whose input `key` names this resource: by reference, or by its name or id."""
        names = {f"${{{resource.name}.id}}", resource.inputs.get(key)} - {None}
        for other in self.of(kind):
            if (resource.urn and resource.urn in other.references.get(key, ())) or other.inputs.get(key) in names:
                yield other


@dataclass(frozen=True)
class Rule:
    """One fact about what is safe. types: the resources it is about, all custom ones where empty."""

    name: str
    types: frozenset[str]
    violations: Callable[[Resource, Stack], Iterator[Violation]]

    def findings(self, stack: Stack) -> Iterator[Finding]:
        for resource in stack.resources:
            if resource.type in self.types or (not self.types and resource.custom):
                for path, message in self.violations(resource, stack):
                    place = f"{resource.name}.{path}" if path else resource.name
                    yield Finding(level="error", rule=self.name, path=place, message=message)


RULES: dict[str, Rule] = {}
Stated = Callable[[Resource, Stack], Iterator[Violation]]


def rule(name: str, *types: str) -> Callable[[Stated], Stated]:
    """Registers a function (resource, stack) -> violations as the rule `name` for resources of these types."""

    def register(function: Stated) -> Stated:
        if name in RULES:
            raise ValueError(f"two policy rules are named {name}")
        RULES[name] = Rule(name, frozenset(types), function)
        return function

    return register


def check(rows: Sequence[Row | Resource]) -> tuple[Finding, ...]:
    """What every rule finds in the resources of a stack, in the rules' order."""
    stack = Stack(tuple(row if isinstance(row, Resource) else Resource.of(row) for row in rows))
    return tuple(finding for rule in RULES.values() for finding in rule.findings(stack))
