"""The policy as a pack that the engine runs: `pulumi preview --policy-pack infra/policy_pack`.

The rules are those of `infra.policy`, function for function. A rule about one resource stops the engine before
that resource is made; a rule about all of them reports at the end, so look at a preview first. What a preview cannot
know yet (an ARN of something that is not there) is no violation: the pack reports it as unchecked, and checks it in the
update. The ceiling of costs comes from `--policy-pack-config`: {"cost-ceiling": {"usd_per_hour": 120}}.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from pulumi_policy import (  # pyright: ignore[reportMissingImports] (the pack has an environment of its own)
    EnforcementLevel,
    Policy,
    PolicyConfigSchema,
    PolicyPack,
    PolicyResource,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
)

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from infra.policy import Resource, ResourceRule, Rule, Stack, StackRule, rules, summary

CEILING = "usd_per_hour"


def policy(rule: Rule) -> Policy:
    match rule:
        case ResourceRule():
            return ResourceValidationPolicy(rule.name, summary(rule), alone(rule))
        case StackRule():
            schema = PolicyConfigSchema({CEILING: {"type": "number"}}) if rule.name == "cost-ceiling" else None
            return StackValidationPolicy(rule.name, summary(rule), together(rule), config_schema=schema)


def alone(rule: ResourceRule) -> Callable[[ResourceValidationArgs, ReportViolation], None]:
    def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
        resource = read(args)
        if rule.concerns(resource):
            for path, message in rule.violations(resource):
                report(f"{path or args.name}: {message}")

    return validate


def together(rule: StackRule) -> Callable[[StackValidationArgs, ReportViolation], None]:
    def validate(args: StackValidationArgs, report: ReportViolation) -> None:
        ceiling = (args.get_config() or {}).get(CEILING)
        for resource, path, message in rule.violations(Stack(tuple(map(read, args.resources)), ceiling)):
            report(f"{path}: {message}" if path else message, resource.urn if resource else None)

    return validate


def read(given: ResourceValidationArgs | PolicyResource) -> Resource:
    """A resource as the rules read it. Components have no provider plugin: their types have a package of their own."""
    made_of = given.property_dependencies if isinstance(given, PolicyResource) else {}
    return Resource(
        type=given.resource_type,
        name=given.name,
        urn=given.urn,
        custom=given.resource_type.partition(":")[0] != "gpufleet",
        inputs=given.props,
        references={key: [each.urn for each in resources] for key, resources in made_of.items()},
        provider=given.provider.urn if given.provider else "",
        protect=given.opts.protect,
    )


PolicyPack("gpufleet", [policy(rule) for rule in rules().values()], enforcement_level=EnforcementLevel.MANDATORY)
