"""The shape of a policy rule, and how all of them are run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from infra.plan.model import Finding

Row = Mapping[str, Any]
Violation = tuple[str, str]  # the input's path below the resource, and the message


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
    protect: bool = False

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
            protect=row["protect"],
        )


@dataclass(frozen=True, eq=False)
class Stack:
    """All resources that are declared together. ceiling_usd_per_hour: what they may cost at most, None for no limit."""

    resources: tuple[Resource, ...]
    ceiling_usd_per_hour: float | None = None

    @cached_property
    def _by_type(self) -> Mapping[str, list[Resource]]:
        by_type: defaultdict[str, list[Resource]] = defaultdict(list)
        for resource in self.resources:
            by_type[resource.type].append(resource)
        return by_type

    @cached_property
    def _by_urn(self) -> Mapping[str, Resource]:
        return {resource.urn: resource for resource in self.resources if resource.urn}

    def of(self, *types: str) -> Iterator[Resource]:
        for kind in types:
            yield from self._by_type.get(kind, ())

    def named(self, urn: str) -> Resource | None:
        """The resource with this URN, None for a URN outside the stack."""
        return self._by_urn.get(urn)

    def about(self, resource: Resource, kind: str, key: str) -> Iterator[Resource]:
        """The resources of a type whose input `key` names this resource: by reference, or by its name or id."""
        names = {f"${{{resource.name}.id}}", resource.inputs.get(key)} - {None}
        for other in self.of(kind):
            if (resource.urn and resource.urn in other.references.get(key, ())) or other.inputs.get(key) in names:
                yield other

    def made_of(self, resource: Resource, key: str, kind: str) -> Iterator[Resource]:
        """The resources of a type that an input of this resource was made of."""
        sources = (self.named(urn) for urn in resource.references.get(key, ()))
        return (other for other in sources if other is not None and other.type == kind)


OfResource = Callable[[Resource], Iterator[Violation]]
OfStack = Callable[[Stack], Iterator[tuple[Resource | None, str, str]]]


@dataclass(frozen=True)
class ResourceRule:
    """A rule that one resource alone can violate. types: all custom resources where empty."""

    name: str
    types: frozenset[str]
    violations: OfResource

    def concerns(self, resource: Resource) -> bool:
        return resource.type in self.types or (not self.types and resource.custom)

    def findings(self, stack: Stack) -> Iterator[Finding]:
        for resource in stack.of(*sorted(self.types)) if self.types else stack.resources:
            if self.concerns(resource):
                for path, message in self.violations(resource):
                    yield _finding(self.name, resource, path, message)


@dataclass(frozen=True)
class StackRule:
    """A rule over all resources of a stack. violations: the resource, the path, the message;
    no resource where the stack as a whole is meant."""

    name: str
    violations: OfStack

    def findings(self, stack: Stack) -> Iterator[Finding]:
        for resource, path, message in self.violations(stack):
            yield _finding(self.name, resource, path, message)


Rule = ResourceRule | StackRule
RULES: dict[str, Rule] = {}


def rule(name: str, *types: str) -> Callable[[OfResource], OfResource]:
    """Registers a function resource -> violations as the rule `name` for resources of these types."""

    def register(function: OfResource) -> OfResource:
        _register(ResourceRule(name, frozenset(types), function))
        return function

    return register


def stack_rule(name: str) -> Callable[[OfStack], OfStack]:
    """Registers a function stack -> (resource, path, message) as the rule `name`."""

    def register(function: OfStack) -> OfStack:
        _register(StackRule(name, function))
        return function

    return register


def summary(rule: Rule) -> str:
    """What the rule is about, in one line."""
    return (rule.violations.__doc__ or "").partition("\n")[0]


def _register(rule: Rule) -> None:
    if rule.name in RULES:
        raise ValueError(f"two policy rules are named {rule.name}")
    RULES[rule.name] = rule


def _finding(rule: str, resource: Resource | None, path: str, message: str) -> Finding:
    place = ".".join(filter(None, [resource.name if resource else "", path])) or "the stack"
    return Finding(level="error", rule=rule, path=place, message=message)
