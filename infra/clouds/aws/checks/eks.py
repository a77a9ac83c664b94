"""Rules about clusters of EKS. Those of their nodes' types, disks, networks and reservations are the rules of EC2."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_network

from infra.checks.rule import Violation, rule
from infra.clouds.aws.plan.capacity import ManagedPool
from infra.clouds.aws.plan.model import AwsEksPlan, AwsPlan
from infra.clouds.aws.spec.cluster import AwsSpec
from infra.clouds.aws.spec.market import SpotMarket
from infra.clouds.kubernetes.plan.charts import EFA
from infra.plan.firewall import too_wide

VERSIONS = ("1.34", "1.35")  # until 2026-12-02 and 2027-03-27; 1.36 once it was tried
MOST_NETWORKS = 40
MOST_NODES = 450  # unless the account has asked for more
LONGEST_NAME = 100
LEAST_EFA_PLUGIN = "0.5.10"


@rule("eks-version-is-supported", AwsEksPlan)
def eks_version_is_supported(_: AwsSpec, plan: AwsEksPlan) -> Iterator[Violation]:
    """EKS supports a version for 14 months (EKS User Guide, Understand the Kubernetes version lifecycle)."""
    if plan.eks.version not in VERSIONS:
        yield "cluster.eks.version", f"{plan.eks.version} is none of those that are supported: {', '.join(VERSIONS)}"


@rule("eks-name-fits", AwsEksPlan)
def eks_name_fits(_: AwsSpec, plan: AwsEksPlan) -> Iterator[Violation]:
    """A cluster's name, which is made from the stack's, has at most 100 characters (EKS API, CreateCluster)."""
    if (over := len(plan.eks.name) - LONGEST_NAME) > 0:
        message = f"{plan.eks.name} is longer than the {LONGEST_NAME} characters that EKS takes"
        yield "cluster.eks", f"{message}: name the stack in {len(plan.stack) - over} at most"


@rule("eks-spans-two-zones", AwsEksPlan)
def eks_spans_two_zones(spec: AwsSpec, plan: AwsEksPlan) -> Iterator[Violation]:
    """A control plane stands in subnets of at least two zones (EKS User Guide, VPC and subnet requirements)."""
    if len(plan.zones) < 2:
        message = (
            "a control plane stands in two zones: name two in `zones`, and in `nodes` the one of each fabric group"
        )
        yield f"cluster.{'zones' if spec.zones else 'zone'}", message


@rule("eks-api-is-not-open-to-the-world", AwsEksPlan)
def eks_api_is_not_open_to_the_world(_: AwsSpec, plan: AwsEksPlan) -> Iterator[Violation]:
    """Whoever reaches it may try credentials and its bugs (EKS User Guide, Cluster API server endpoint)."""
    for whole in too_wide([ip_network(text) for text in plan.eks.api_from]):
        message = f"the cluster's API would be open to {whole}; name the networks that people come from"
        yield "cluster.eks.api_from", message


@rule("eks-api-networks-are-public", AwsEksPlan)
def eks_api_networks_are_public(_: AwsSpec, plan: AwsEksPlan) -> Iterator[Violation]:
    """EKS refuses reserved networks, examples' own among them (EKS User Guide, Cluster API server endpoint)."""
    for i, network in enumerate(map(ip_network, plan.eks.api_from)):
        if not network.is_global and not list(too_wide((network,))):
            yield f"cluster.eks.api_from[{i}]", f"{network} is reserved: nobody comes from it over the internet"


@rule("eks-api-networks-are-few", AwsEksPlan)
def eks_api_networks_are_few(_: AwsSpec, plan: AwsEksPlan) -> Iterator[Violation]:
    """40 networks reach the endpoint of a cluster (Amazon EKS service quotas, Public endpoint access CIDR ranges)."""
    if (count := len(plan.eks.api_from)) > MOST_NETWORKS:
        yield "cluster.eks.api_from", f"{count} networks; EKS takes {MOST_NETWORKS}: name wider ones"


@rule("eks-system-pods-have-a-node", AwsEksPlan)
def eks_system_pods_have_a_node(_: AwsSpec, plan: AwsEksPlan) -> Iterator[Violation]:
    """Nodes with GPUs are tainted; DNS does not tolerate that, and its add-on never gets ready (EKS User Guide)."""
    if all(group.gpu for group in plan.groups):
        yield "cluster.nodes", "DNS has no node to run on: add a group without GPUs, such as 2 of m6i.large"


@rule("managed-spot-has-no-options", AwsEksPlan)
def managed_spot_has_no_options(spec: AwsSpec, plan: AwsEksPlan) -> Iterator[Violation]:
    """A managed node group buys spot by itself, and refuses options of a template (EKS User Guide, Managed nodes)."""
    for i, group in enumerate(spec.nodes):
        if not isinstance(group.market, SpotMarket):
            continue
        for key in ("max_price", "fallback"):
            if getattr(group.market, key) is not None:
                yield f"cluster.nodes[{i}].market.{key}", "EKS buys spot at up to the on-demand price; leave it out"


@rule("managed-group-is-within-its-quota", AwsPlan, level="warning")
def managed_group_is_within_its_quota(_: AwsSpec, plan: AwsPlan) -> Iterator[Violation]:
    """450 nodes in a managed node group, which an account may raise (Amazon EKS service quotas)."""
    for i, group in enumerate(plan.groups):
        if isinstance(group.capacity, ManagedPool) and group.count > MOST_NODES:
            message = f"{group.count} is more than a managed node group has without a raised quota: {MOST_NODES}"
            yield f"cluster.nodes[{i}].count", message


@rule("device-plugins-are-installed-apart", AwsEksPlan, level="info")
def device_plugins_are_installed_apart(_: AwsSpec, plan: AwsEksPlan) -> Iterator[Violation]:
    """EKS has no add-on for GPUs or EFA (EKS User Guide, AWS add-ons); before 0.5.10 EFA's miscounts B200's cards."""
    if plan.eks.tenant is not None or not any(group.gpu for group in plan.groups):
        return
    charts = ["NVIDIA's device plug-in"]
    if any(group.fabric == "efa" for group in plan.groups):
        charts.append(f"aws-efa-k8s-device-plugin {EFA.version} (at least {LEAST_EFA_PLUGIN})")
    yield "cluster.eks", f"pods see no GPU before these are in the cluster, which is not done here: {', '.join(charts)}"


@rule("eks-tenant-has-gpus", AwsEksPlan)
def eks_tenant_has_gpus(spec: AwsSpec, plan: AwsEksPlan) -> Iterator[Violation]:
    """A tenant's share, queues and jobs are of GPUs: without any it would be left out (`plan/eks.py`)."""
    if spec.eks is not None and spec.eks.tenant is not None and not any(group.gpu for group in plan.groups):
        yield "cluster.eks.tenant", "has no GPUs to share: add a group of them, or leave the tenant out until then"


@rule("tenant-is-made-through-the-api", AwsEksPlan, level="info")
def tenant_is_made_through_the_api(_: AwsSpec, plan: AwsEksPlan) -> Iterator[Violation]:
    """Its objects are applied from where `up` runs, by one of the admins (EKS User Guide, Cluster access)."""
    if plan.eks.tenant is not None and not plan.eks.api_from:
        yield "cluster.eks.tenant", "`up` must run inside the VPC, where the cluster's API is: `api_from` opens it"
