"""Rules about ways into the nodes of Alibaba Cloud, out of them, and around them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from ipaddress import IPv4Network

from infra.checks.rule import Violation, rule
from infra.clouds.alicloud.plan.model import AlicloudAckPlan, AlicloudHostsPlan, AlicloudPlan
from infra.clouds.alicloud.plan.network import CLOUD_SERVICES
from infra.clouds.alicloud.spec.cluster import AlicloudSpec

RULES_PER_GROUP = 200
LONGEST_NAME = 28  # a contact is gpufleet-<stack>-<number>; a scaling group, <stack>-<group>, has 64 characters
STACK_NAME = re.compile(rf"[A-Za-z][A-Za-z0-9-]{{0,{LONGEST_NAME - 1}}}")


@rule("somebody-reaches-the-nodes", AlicloudHostsPlan)
def somebody_reaches_the_nodes(spec: AlicloudSpec, plan: AlicloudHostsPlan) -> Iterator[Violation]:
    """Nodes have no address of the internet: people come by a head, or by a cluster's API (ECS User Guide, Connect)."""
    if not spec.access.ssh_from:
        yield "cluster.access", "nobody could log in; name `ssh_from` with a `public_key`"
    elif plan.access.head is None:
        yield "cluster.nodes", "nobody could log in: nodes have no public address; add a group `head` with `count: 1`"


@rule("rules-fit-an-enterprise-group", AlicloudPlan)
def rules_fit_an_enterprise_group(_: AlicloudSpec, plan: AlicloudPlan) -> Iterator[Violation]:
    """A security group has at most 200 rules, both directions together (ECS User Guide, Limits)."""
    for group, count in Counter(each.group for each in plan.network.rules).items():
        if count > RULES_PER_GROUP:
            message = f"{count} rules for {group}; a security group has {RULES_PER_GROUP}: name wider networks"
            yield "cluster.access.ssh_from", message


@rule("network-leaves-the-clouds-own-range", AlicloudPlan)
def network_leaves_the_clouds_own_range(_: AlicloudSpec, plan: AlicloudPlan) -> Iterator[Violation]:
    """100.64.0.0/10 is where metadata, DNS and OSS answer, and no VPC may use it (VPC User Guide, Plan networks)."""
    if IPv4Network(plan.network.cidr).overlaps(IPv4Network(CLOUD_SERVICES)):
        yield "cluster.network.cidr", f"{plan.network.cidr} overlaps {CLOUD_SERVICES}, the cloud's own; take 10.0.0.0/8"


@rule("nodes-fetch-what-they-need", AlicloudHostsPlan, level="warning")
def nodes_fetch_what_they_need(spec: AlicloudSpec, _: AlicloudHostsPlan) -> Iterator[Violation]:
    """Without NAT a node reaches OSS, mirrors and metadata alone (NAT Gateway User Guide, SNAT)."""
    if spec.network.internet == "none":
        yield (
            "cluster.network.internet",
            "nodes reach Alibaba Cloud only: `images` must hold driver and packages already",
        )


@rule("ack-nodes-have-a-key", AlicloudAckPlan)
def ack_nodes_have_a_key(spec: AlicloudSpec, plan: AlicloudAckPlan) -> Iterator[Violation]:
    """A node pool must have a password or a key pair, and a managed one only the latter (cs.NodePool, password)."""
    if spec.access.public_key is None:
        yield "cluster.access.public_key", "is missing: ACK makes no node without a key pair"


@rule("ack-services-are-outside-the-network", AlicloudAckPlan)
def ack_services_are_outside_the_network(_: AlicloudSpec, plan: AlicloudAckPlan) -> Iterator[Violation]:
    """The network of a cluster's services may not meet the VPC's (cs.ManagedKubernetes, service_cidr)."""
    if IPv4Network(plan.network.cidr).overlaps(IPv4Network(plan.ack.service_cidr)):
        yield "cluster.network.cidr", f"{plan.network.cidr} overlaps {plan.ack.service_cidr}, where services stand"


@rule("ack-tenant-has-gpus", AlicloudAckPlan)
def ack_tenant_has_gpus(spec: AlicloudSpec, plan: AlicloudAckPlan) -> Iterator[Violation]:
    """A tenant's share, queues and jobs are of GPUs: without any it would be left out (`plan/ack.py`)."""
    if spec.ack is not None and spec.ack.tenant is not None and not any(group.gpu for group in plan.groups):
        yield "cluster.ack.tenant", "has no GPUs to share: add a group of them, or leave the tenant out until then"


@rule("ack-tenant-is-made-inside-the-network", AlicloudAckPlan, level="info")
def ack_tenant_is_made_inside_the_network(_: AlicloudSpec, plan: AlicloudAckPlan) -> Iterator[Violation]:
    """Its objects go through the API, which has an address of the VPC alone (ACK User Guide, Connect to a cluster)."""
    if plan.ack.tenant is not None:
        yield (
            "cluster.ack.tenant",
            "`up` must run inside the VPC, where the cluster's API is, and find ack-ram-tool there",
        )


@rule("stack-name-fits-what-it-names", AlicloudPlan)
def stack_name_fits_what_it_names(_: AlicloudSpec, plan: AlicloudPlan) -> Iterator[Violation]:
    """What a stack makes is named after it: a RAM policy is of letters, digits and hyphens, a security group begins
    with a letter, an alarm contact has 40 characters (RAM API, CreatePolicy; provider documentation of the others)."""
    if not STACK_NAME.fullmatch(plan.stack):
        message = f"the stack's name must be 1 to {LONGEST_NAME} letters, digits and hyphens, the first a letter"
        yield "cluster", f"{message}: {plan.stack} names what takes no others"
