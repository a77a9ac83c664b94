"""Where a resource goes is written down: a default provider takes account and region from whoever runs the program."""

from __future__ import annotations

from collections.abc import Iterator

from infra.graph.policy.rule import Resource, Stack, Violation, rule

OWN = ("pulumi:providers:", "pulumi:pulumi:")


@rule("explicit-provider")
def explicit_provider(resource: Resource, stack: Stack) -> Iterator[Violation]:
    name = resource.provider.rpartition("::")[2]
    if not resource.type.startswith(OWN) and (not name or name.startswith("default")):
        yield "", "needs an explicit provider: the default one takes its region from whoever runs it"


@rule("provider-region", "pulumi:providers:aws")
def provider_region(resource: Resource, stack: Stack) -> Iterator[Violation]:
    if not resource.inputs.get("region"):
        yield "region", "must be set: without it the region is whoever runs it's"
