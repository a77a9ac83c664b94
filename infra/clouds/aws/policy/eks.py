"""Policy rules on EKS: an API for named networks only, audit logs, encrypted secrets, enforced network policies.

Sources: EKS User Guide, "Cluster API server endpoint" (open to 0.0.0.0/0 by default) and "Send control plane logs to
CloudWatch Logs"; EKS Best Practices, "Data encryption and secrets management"; EKS API, RemoteAccessConfig; EKS User
Guide, "Limit Pod traffic with Kubernetes network policies" (off unless the add-on has `enableNetworkPolicy`).
"""

from __future__ import annotations

from collections.abc import Iterator

from infra.clouds.aws.policy.types import EKS_ADDON, EKS_CLUSTER, EKS_NODES, LAUNCH_TEMPLATE
from infra.plan.firewall import SSH_PORT
from infra.policy.networks import network_of, too_wide
from infra.policy.rule import Resource, Stack, Violation, rule, stack_rule
from infra.policy.wire import document, false, items, mapping, number, true

NETWORK_PLUGIN = "vpc-cni"


@rule("eks-endpoint-from-the-world", EKS_CLUSTER)
def eks_endpoint_from_the_world(resource: Resource) -> Iterator[Violation]:
    """The API server of Kubernetes is for named networks."""
    network = mapping(resource.inputs.get("vpcConfig"))
    if false(network.get("endpointPublicAccess", True)):
        return
    cidrs = items(network.get("publicAccessCidrs"))
    named = [network for cidr in cidrs if (network := network_of(cidr)) is not None]
    if not cidrs or len(named) < len(cidrs) or any(too_wide(named)):
        yield "vpcConfig.publicAccessCidrs", "must name your networks, or `endpointPublicAccess` be false"


@rule("eks-audit-log", EKS_CLUSTER)
def eks_audit_log(resource: Resource) -> Iterator[Violation]:
    """The control plane keeps a record of who asked for what."""
    if "audit" not in items(resource.inputs.get("enabledClusterLogTypes")):
        yield "enabledClusterLogTypes", "must have `audit`: nobody could tell afterwards who did what"


@rule("encrypted-kubernetes-secrets", EKS_CLUSTER)
def encrypted_kubernetes_secrets(resource: Resource) -> Iterator[Violation]:
    """Secrets of Kubernetes are encrypted with the stack's key (EKS Best Practices, "Data encryption and secrets")."""
    encryption = mapping(resource.inputs.get("encryptionConfig"))
    if "secrets" not in items(encryption.get("resources")):
        yield "encryptionConfig", "must name a key for `secrets`"


@rule("eks-node-ssh", EKS_NODES)
def eks_node_ssh(resource: Resource) -> Iterator[Violation]:
    """EKS nodes with a key name the groups that may use it: without them EKS opens port 22 to the world."""
    access = mapping(resource.inputs.get("remoteAccess"))
    if access.get("ec2SshKey") and not items(access.get("sourceSecurityGroupIds")):
        yield "remoteAccess.sourceSecurityGroupIds", f"is missing: EKS opens port {SSH_PORT} to 0.0.0.0/0 without it"


@rule("eks-nodes-have-a-template", EKS_NODES)
def eks_nodes_have_a_template(resource: Resource) -> Iterator[Violation]:
    """Nodes of EKS come from a launch template, which the rules of templates are about."""
    if not resource.inputs.get("launchTemplate"):
        yield "launchTemplate", "is missing: disk, metadata service and tags would be EKS's own choice"


@stack_rule("eks-enforces-network-policies")
def eks_enforces_network_policies(stack: Stack) -> Iterator[tuple[Resource, str, str]]:
    """A network policy that nobody enforces is taken by the API server, and denies nothing."""
    for cluster in stack.of(EKS_CLUSTER):
        addons = stack.about(cluster, EKS_ADDON, "clusterName")
        plugin = next((each for each in addons if each.inputs.get("addonName") == NETWORK_PLUGIN), None)
        if plugin is None:
            yield cluster, "", f"needs the add-on {NETWORK_PLUGIN}, told to enforce network policies"
        elif not true(document(plugin.inputs.get("configurationValues")).get("enableNetworkPolicy")):
            yield plugin, "configurationValues", 'must set `enableNetworkPolicy` to "true": pods would reach everything'


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
