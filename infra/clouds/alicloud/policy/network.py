"""Who may come into a network of Alibaba Cloud, in the one form that its rules have.

Sources: ECS API, AuthorizeSecurityGroup (a rule without a port range is for all ports; 1/65535 is too); CIS Alibaba
Cloud 2.0, 3.3 (flow logs), 4.3 (no SSH from the internet).
"""

from __future__ import annotations

from collections.abc import Iterator

from infra.plan.firewall import SSH_PORT
from infra.policy.networks import ALL_PORTS, MOST_IPV4_ADDRESSES, WEB_PORTS, Network, addresses, network_of, too_wide
from infra.policy.rule import Resource, Stack, Violation, rule, stack_rule
from infra.policy.wire import document, false, items, mapping, true

RULE = "alicloud:ecs/securityGroupRule:SecurityGroupRule"
VPC, FLOW_LOG = "alicloud:vpc/network:Network", "alicloud:vpc/flowLog:FlowLog"
NETWORK_PLUGIN = "terway-eniip"
CLUSTER = "alicloud:cs/managedKubernetes:ManagedKubernetes"
QUEUE, LOG_STORE = "alicloud:message/serviceQueue:ServiceQueue", "alicloud:log/store:Store"


@stack_rule("alicloud-ssh-from-the-world")
def ssh_from_the_world(stack: Stack) -> Iterator[tuple[Resource, str, str]]:
    """SSH is open to networks that somebody named; halves of the world in two rules are the world."""
    openings = [entry for entry in stack.of(RULE) if _lets_in(entry) and _covers(entry, SSH_PORT)]
    named = [network for entry in openings for network in _networks(entry)]
    wide = list(too_wide(named))
    total = addresses(named)
    for entry in openings:
        networks = list(_networks(entry))
        if any(net.version == one.version and net.subnet_of(one) for net in networks for one in wide):  # pyright: ignore[reportArgumentType]
            yield entry, "cidrIp", f"port {SSH_PORT} is open to the world; name your networks"
        elif networks and total > MOST_IPV4_ADDRESSES:
            yield entry, "cidrIp", f"port {SSH_PORT} is open to {total} addresses in all; name your networks"
        if entry.inputs.get("prefixListId") is not None:
            yield entry, "prefixListId", f"port {SSH_PORT} is open to a prefix list, which may hold any network"
        if not networks and entry.inputs.get("sourceSecurityGroupId") is None and not entry.inputs.get("prefixListId"):
            yield entry, "cidrIp", f"port {SSH_PORT} is open to what cannot be read; write a CIDR"


@rule("alicloud-only-web-from-the-world", RULE)
def only_web_from_the_world(resource: Resource) -> Iterator[Violation]:
    """The world reaches web ports at most: notebooks, dashboards and stores ask nobody who he is."""
    udp = str(resource.inputs.get("ipProtocol")).lower() == "udp"
    if not _lets_in(resource, udp=True) or (_covers(resource, SSH_PORT) and not udp):
        return
    first, last = _ports(resource)
    if set(range(first, last + 1)) <= WEB_PORTS:
        return
    if list(too_wide(list(_networks(resource)))):
        yield "portRange", f"ports {first} to {last} are open to the world; only 80 and 443 may be"
    if resource.inputs.get("prefixListId") is not None:
        yield "prefixListId", f"ports {first} to {last} are open to a prefix list, which may hold any network"


@stack_rule("alicloud-flow-log")
def flow_log(stack: Stack) -> Iterator[tuple[Resource, str, str]]:
    """A VPC keeps a record of who spoke to whom."""
    for network in stack.of(VPC):
        if not list(stack.about(network, FLOW_LOG, "resourceId")):
            yield network, "", "needs a flow log of the VPC"


@rule("alicloud-api-in-the-network", CLUSTER)
def api_in_the_network(resource: Resource) -> Iterator[Violation]:
    """The API of a cluster is reached from its VPC; without a word it has an address of the internet."""
    if not false(resource.inputs.get("slbInternetEnabled", True)):
        yield "slbInternetEnabled", "must be false: the API server would be reachable from the internet"


@rule("alicloud-kubernetes-secrets", CLUSTER)
def kubernetes_secrets(resource: Resource) -> Iterator[Violation]:
    """Secrets of a cluster are encrypted with a key of ours."""
    if not resource.inputs.get("encryptionProviderKey"):
        yield "encryptionProviderKey", "must be set: secrets lie in clear in the cluster's store"
    if not false(resource.inputs.get("disableEncryption")):
        yield "disableEncryption", "must be false"


@rule("alicloud-audit-log", CLUSTER)
def audit_log(resource: Resource) -> Iterator[Violation]:
    """A cluster keeps a record of who asked for what."""
    if not true(mapping(resource.inputs.get("auditLogConfig")).get("enabled")):
        yield "auditLogConfig.enabled", "must be true: nobody could tell afterwards who did what"


@rule("alicloud-enforces-network-policies", CLUSTER)
def enforces_network_policies(resource: Resource) -> Iterator[Violation]:
    """A network policy that nobody enforces denies nothing (ACK User Guide, "Use network policies in ACK clusters")."""
    addons = {
        mapping(entry).get("name"): mapping(entry).get("config") for entry in items(resource.inputs.get("addons"))
    }
    if NETWORK_PLUGIN not in addons:
        yield "addons", f"must have {NETWORK_PLUGIN}: other plug-ins of ACK enforce no network policy"
    elif not true(document(addons[NETWORK_PLUGIN]).get("NetworkPolicy")):
        yield (
            "addons",
            f'{NETWORK_PLUGIN} must have the config {{"NetworkPolicy": "true"}}: pods would reach all',
        )


@rule("alicloud-encrypted-messages", QUEUE)
def encrypted_messages(resource: Resource) -> Iterator[Violation]:
    """A queue is encrypted; without a word it is not."""
    if not true(resource.inputs.get("enableSse")):
        yield "enableSse", "must be true"


@rule("alicloud-encrypted-logs", LOG_STORE)
def encrypted_logs(resource: Resource) -> Iterator[Violation]:
    """A log store is encrypted; without a word it is not."""
    if not true(mapping(resource.inputs.get("encryptConf")).get("enable")):
        yield "encryptConf.enable", "must be true"


def _lets_in(resource: Resource, *, udp: bool = False) -> bool:
    """Over TCP, and over UDP where that is meant."""
    inputs, others = resource.inputs, ("icmp", "icmpv6", "gre", *(() if udp else ("udp",)))
    return (
        inputs.get("type") != "egress"
        and inputs.get("policy", "accept") != "drop"
        and str(inputs.get("ipProtocol", "all")).lower() not in others
    )


def _ports(resource: Resource) -> tuple[int, int]:
    """All of them for what cannot be read."""
    first, _, last = str(resource.inputs.get("portRange", "")).partition("/")
    if not (first.isdecimal() and last.isdecimal()) or str(resource.inputs.get("ipProtocol")).lower() == "all":
        return ALL_PORTS
    return int(first), int(last)


def _covers(resource: Resource, port: int) -> bool:
    first, last = _ports(resource)
    return first <= port <= last


def _networks(resource: Resource) -> Iterator[Network]:
    for key in ("cidrIp", "ipv6CidrIp"):
        if (network := network_of(resource.inputs.get(key))) is not None:
            yield network
