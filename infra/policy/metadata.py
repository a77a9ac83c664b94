"""The instance metadata service answers only who holds a session token (EC2 User Guide, "Use IMDSv2")."""

from __future__ import annotations

from collections.abc import Iterator

from infra.policy.rule import Resource, Stack, Violation, rule, stack_rule
from infra.policy.wire import EKS_NODES, INSTANCE, LAUNCH_CONFIGURATION, LAUNCH_TEMPLATE, SPOT_INSTANCE, mapping, number

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


@stack_rule("kubernetes-node-metadata")
def kubernetes_node_metadata(stack: Stack) -> Iterator[tuple[Resource, str, str]]:
    """A token for metadata ends at a node of Kubernetes: one hop further on, every pod could take on the node's role.

    Source: EKS Best Practices, "Restrict access to the instance profile assigned to the worker node".
    """
    for nodes in stack.of(EKS_NODES):
        templates = list(stack.made_of(nodes, "launchTemplate", LAUNCH_TEMPLATE))
        if nodes.inputs.get("launchTemplate") and not templates:
            yield nodes, "launchTemplate", "must be one of this stack: how far its metadata reaches is not known"
        for template in templates:
            options = mapping(template.inputs.get("metadataOptions"))
            if options.get("httpEndpoint") == "disabled":
                continue
            hops = number(options.get("httpPutResponseHopLimit"))
            if hops != 1:
                place = "metadataOptions.httpPutResponseHopLimit"
                yield template, place, f"must be 1, not {hops}: pods of these nodes could take on the node's role"
            if options.get("httpProtocolIpv6") not in (None, "disabled"):
                yield template, "metadataOptions.httpProtocolIpv6", "must be `disabled`: fd00:ec2::254 is a second way"
