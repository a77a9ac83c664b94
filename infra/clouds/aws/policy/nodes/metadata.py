"""The instance metadata service answers only who holds a session token (EC2 User Guide, "Use IMDSv2")."""

from __future__ import annotations

from collections.abc import Iterator

from infra.clouds.aws.policy.types import INSTANCE, LAUNCH_CONFIGURATION, LAUNCH_TEMPLATE, SPOT_INSTANCE
from infra.policy.rule import Resource, Violation, rule
from infra.policy.wire import mapping, number

MOST_HOPS = 2  # the host, and one container bridge on it


@rule("imdsv2", LAUNCH_TEMPLATE, LAUNCH_CONFIGURATION, INSTANCE, SPOT_INSTANCE)
def imdsv2(resource: Resource) -> Iterator[Violation]:
    """The metadata service wants a token, and is two hops away at most.

    An instance made of a template has the template's options unless it says otherwise.
    """
    if resource.inputs.get("launchTemplate") and "metadataOptions" not in resource.inputs:
        return
    options = mapping(resource.inputs.get("metadataOptions"))
    if options.get("httpEndpoint") == "disabled":
        return
    if options.get("httpTokens") != "required":
        yield "metadataOptions.httpTokens", "must be `required`: without it a forged request can read the credentials"
    hops = number(options.get("httpPutResponseHopLimit"))
    if hops is None or not 1 <= hops <= MOST_HOPS:
        yield "metadataOptions.httpPutResponseHopLimit", f"must be 1 or {MOST_HOPS}, not {hops}"
