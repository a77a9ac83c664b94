"""Where a resource goes is written down: a default provider takes account and region from the caller's environment."""

from __future__ import annotations

from collections.abc import Iterator

from infra.policy import tables
from infra.policy.rule import Resource, Violation, rule
from infra.policy.wire import false

CREDENTIALS = ("accessKey", "secretKey", "token", "securityToken")
PROVIDERS = tables.of_every_cloud().providers
OWN = ("pulumi:providers:", "pulumi:pulumi:")


@rule("explicit-provider")
def explicit_provider(resource: Resource) -> Iterator[Violation]:
    """Each resource has a provider that the program made."""
    name = resource.provider.rpartition("::")[2]
    if not resource.type.startswith(OWN) and (not name or name.startswith("default")):
        yield "", "needs an explicit provider: the default one takes its region from the caller's environment"


@rule("provider-region", *PROVIDERS)
def provider_region(resource: Resource) -> Iterator[Violation]:
    """A provider names its region."""
    if not resource.inputs.get("region"):
        yield "region", "must be set: without it the region comes from the caller's environment"


@rule("provider-credentials", *PROVIDERS)
def provider_credentials(resource: Resource) -> Iterator[Violation]:
    """A provider takes its credentials from the caller: in the program they would be in its state."""
    for key in CREDENTIALS:
        if resource.inputs.get(key):
            yield key, "must not be given: use a profile, a role or the caller's environment"


@rule("provider-over-tls", *PROVIDERS)
def provider_over_tls(resource: Resource) -> Iterator[Violation]:
    """A provider checks whom it speaks to."""
    if not false(resource.inputs.get("insecure")):
        yield "insecure", "must be false: anybody on the way could answer in the cloud's place"
    if str(resource.inputs.get("protocol", "HTTPS")).upper() != "HTTPS":
        yield "protocol", "must be HTTPS: anybody on the way could answer in the cloud's place"
