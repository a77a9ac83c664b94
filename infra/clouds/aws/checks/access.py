"""Rules about ways into the nodes of EC2, and out of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from ipaddress import IPv4Network

from infra.checks.rule import Violation, rule
from infra.clouds.aws.plan.model import AwsHostsPlan, AwsPlan
from infra.clouds.aws.spec.cluster import AwsSpec

RULES_PER_GROUP = 60  # in each direction
IMPORTED = ("ssh-ed25519", "ssh-rsa")


@rule("somebody-can-log-in", AwsPlan)
def somebody_can_log_in(spec: AwsSpec, plan: AwsPlan) -> Iterator[Violation]:
    """A node has no other door than SSH and Session Manager (EC2 User Guide, Connect to your Linux instance).

    A cluster of EKS has its API, which without `api_from` is reached through a node too.
    """
    if not spec.access.ssh_from and not plan.access.session_manager and not (plan.eks and plan.eks.api_from):
        yield "cluster.access", "nobody could log in; name `ssh_from` with a `public_key`, or set `ssm: true`"


@rule("network-is-one-a-vpc-can-have", AwsPlan)
def network_is_one_a_vpc_can_have(spec: AwsSpec, _: AwsPlan) -> Iterator[Violation]:
    """Loopback, link-local, multicast and reserved ones are no network of machines (RFC 6890; VPC User Guide)."""
    network = spec.network.cidr
    if network.is_loopback or network.is_link_local or network.is_multicast or network.is_reserved or _this(network):
        message = f"{network} is not a unicast range; take one of 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16"
        yield "cluster.network.cidr", message


@rule("network-is-not-somebody-elses", AwsPlan, level="warning")
def network_is_not_somebody_elses(spec: AwsSpec, _: AwsPlan) -> Iterator[Violation]:
    """A VPC may have public addresses, and hides then who owns them (VPC User Guide, VPC CIDR blocks)."""
    if (network := spec.network.cidr).is_global:
        message = f"{network} is public address space; use an RFC 1918 range"
        yield "cluster.network.cidr", message


@rule("login-key-can-be-imported", AwsPlan)
def login_key_can_be_imported(_: AwsSpec, plan: AwsPlan) -> Iterator[Violation]:
    """EC2 takes keys of two types, and neither ECDSA's nor those of security tokens (EC2 API, ImportKeyPair)."""
    kind = plan.access.key_pair.partition(" ")[0] if plan.access.key_pair else None
    if kind is not None and kind not in IMPORTED:
        yield "cluster.access.public_key", f"EC2 takes no key of type {kind}, only {' and '.join(IMPORTED)}"


@rule("public-address-needs-a-single-interface", AwsPlan)
def public_address_needs_a_single_interface(_: AwsSpec, plan: AwsPlan) -> Iterator[Violation]:
    """A public address comes only with one interface (EC2 API, AssociatePublicIpAddress), and an EFA node has more."""
    for i, group in enumerate(plan.groups):
        if group.public_address and len(group.interfaces) > 1:
            many = f"its {len(group.interfaces)} network interfaces rule out a public address, by which SSH would come"
            yield f"cluster.nodes[{i}]", f"{many}; add a group `head` to log in to, or use `ssm` without `ssh_from`"


@rule("rules-fit-a-security-group", AwsPlan)
def rules_fit_a_security_group(_: AwsSpec, plan: AwsPlan) -> Iterator[Violation]:
    """A security group has at most 60 rules in each direction (Amazon VPC quotas)."""
    counts = Counter((each.group, each.direction) for each in plan.network.rules)
    for (group, direction), count in counts.items():
        if count > RULES_PER_GROUP:
            message = (
                f"{count} {direction} rules for {group}; a security group has {RULES_PER_GROUP}: name wider networks"
            )
            yield "cluster.access.ssh_from", message


@rule("nodes-can-fetch-what-they-need", AwsHostsPlan, level="warning")
def nodes_can_fetch_what_they_need(spec: AwsSpec, _: AwsHostsPlan) -> Iterator[Violation]:
    """Endpoints reach AWS alone; packages, drivers and containers come from elsewhere (VPC User Guide, Endpoints)."""
    if spec.network.internet == "none":
        yield (
            "cluster.network.internet",
            "nodes reach AWS only: `images` must hold the driver and every package already",
        )


@rule("nodes-without-internet-stand-inside", AwsPlan)
def nodes_without_internet_stand_inside(spec: AwsSpec, plan: AwsPlan) -> Iterator[Violation]:
    """Who is reached from outside stands in a public subnet, whose way out is the internet (VPC User Guide)."""
    if spec.network.internet == "none" and all(group.public_address for group in plan.groups):
        message = "its nodes have public IPs, where people reach them"
        yield "cluster.network.internet", f"{message}: add a group `head`, or use `ssm` without `ssh_from`"


def _this(network: IPv4Network) -> bool:
    """Whether it is a part of "this network"."""
    return network.subnet_of(IPv4Network("0.0.0.0/8"))
