"""A cluster of EKS, decided: its control plane and its add-ons.

Sources: EKS User Guide, "VPC and subnet requirements", "AWS add-ons" (their names, service accounts and rights),
"Control plane logs" and "Limit Pod traffic with Kubernetes network policies"; amazon-vpc-cni-k8s, docs/iam-policy.md;
mountpoint-s3, "Configuring Mountpoint".

EKS has no add-on for GPUs or for EFA: the device plug-ins are charts, which come with a tenant's objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from infra.clouds.aws.plan.capacity import ManagedPool, Spot
from infra.clouds.aws.plan.eks_model import AddonPlan, EksPlan
from infra.clouds.aws.plan.eks_nodes import GROUP_LABEL, PODS_PER_NODE
from infra.clouds.aws.plan.groups import subnet_name
from infra.clouds.aws.plan.iam import ANYTHING, SESSIONS, USE_OBJECTS, allow, in_buckets, use_key, use_of_buckets
from infra.clouds.aws.plan.model import AwsGroupPlan, LustrePlan
from infra.clouds.aws.spec.cluster import AwsSpec
from infra.clouds.aws.spec.eks import Eks
from infra.clouds.kubernetes.plan.model import PodGroupPlan, TenantPlan
from infra.clouds.kubernetes.plan.pods import EFA, SPOT_SECONDS, pods
from infra.clouds.kubernetes.plan.tenancy import tenant_plan
from infra.clouds.kubernetes.spec.cluster import Components
from infra.plan.cloud_model import BucketPlan
from infra.plan.iam import Resource, Statement

CONTROL_PLANE_GROUP = "eks.control-plane"  # the dot keeps it apart from the groups of the stack file
LOG_RETENTION_DAYS = 30
NETWORK_SETTINGS = {
    "enableNetworkPolicy": "true",  # else policies are taken, and enforced by nobody
    "env": {"MINIMUM_IP_TARGET": str(PODS_PER_NODE), "WARM_IP_TARGET": "1"},
}

PULL_IMAGES = allow(
    "PullImages",
    "ecr:GetAuthorizationToken",
    "ecr:BatchCheckLayerAvailability",
    "ecr:BatchGetImage",
    "ecr:GetDownloadUrlForLayer",
    on=ANYTHING,
)
JOIN = allow(
    "Join", "ec2:DescribeInstances", "ec2:DescribeInstanceTypes", "eks-auth:AssumeRoleForPodIdentity", on=ANYTHING
)
POD_INTERFACES = allow(
    "PodInterfaces",
    "ec2:AssignPrivateIpAddresses",
    "ec2:AttachNetworkInterface",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeInstances",
    "ec2:DescribeTags",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeSubnets",
    "ec2:DetachNetworkInterface",
    "ec2:ModifyNetworkInterfaceAttribute",
    "ec2:UnassignPrivateIpAddresses",
    on=ANYTHING,
)
TAG_INTERFACES = allow("TagInterfaces", "ec2:CreateTags", on=[Resource(kind="interfaces")])


# The image brings the driver and the container toolkit (EKS User Guide, "Amazon Linux AMIs"), and no device plug-in.
OWNERS = Components(driver="image", device_plugin="operator")


def eks_plan(
    stack: str, spec: AwsSpec, eks: Eks, groups: Sequence[AwsGroupPlan], storage: Sequence[BucketPlan | LustrePlan]
) -> EksPlan:
    """The control plane, and the tenant in it."""
    tenant = _tenant(eks, groups)
    return EksPlan(
        name=f"gpufleet-{stack.replace('.', '-')}",
        version=eks.version,
        admins=eks.admins,
        api_from=tuple(map(str, eks.api_from)),
        subnets=tuple(subnet_name("private", zone) for zone in spec.all_zones),
        security_group=CONTROL_PLANE_GROUP,
        log_retention_days=LOG_RETENTION_DAYS,
        addons=tuple(_addons(spec.region, storage)),
        tenant=tenant,
        tenant_permissions=tuple(_use_of_own(tenant, spec.region, storage)) if tenant else (),
    )


def _tenant(eks: Eks, groups: Sequence[AwsGroupPlan]) -> TenantPlan | None:
    nodes = [_pods(group, group.gpu) for group in groups if group.gpu is not None]
    return tenant_plan(eks.tenant, nodes, OWNERS) if eks.tenant is not None and nodes else None


def _use_of_own(tenant: TenantPlan, region: str, storage: Sequence[BucketPlan | LustrePlan]) -> Iterator[Statement]:
    """What lies below the tenant's name in the stack's buckets, from its network, and the key of that by S3 alone."""
    names, own = [item.name for item in storage if isinstance(item, BucketPlan)], f"{tenant.namespace}/"
    if names:
        listed = in_buckets("ListOwn", "s3:ListBucket", on=[Resource(kind="bucket", name=name) for name in names])
        yield replace(listed, like={"s3:prefix": f"{own}*"})
        yield in_buckets("UseOwn", *USE_OBJECTS, on=[Resource(kind="objects", name=name, prefix=own) for name in names])
        yield use_key(region, storage)


def _pods(group: AwsGroupPlan, gpu: str) -> PodGroupPlan:
    assert isinstance(group.capacity, ManagedPool)
    return pods(
        group.name,
        group.count,
        (gpu, group.gpus_per_node),
        labels={GROUP_LABEL: group.name},
        fabric=(EFA, group.fabric_devices) if group.fabric == "efa" else None,
        notice_seconds=SPOT_SECONDS if isinstance(group.market, Spot) else None,
    )


def eks_permissions(spec: AwsSpec) -> tuple[Statement, ...]:
    """The statements of the nodes' role. What pods may do is their own roles' affair."""
    return PULL_IMAGES, JOIN, *([SESSIONS] if spec.access.ssm else [])


def _addons(region: str, storage: Sequence[BucketPlan | LustrePlan]) -> Iterator[AddonPlan]:
    """In the order in which they are needed. The network plug-in of every supported version knows efa-only."""
    yield AddonPlan(name="eks-pod-identity-agent", before_nodes=True)
    yield AddonPlan(
        name="vpc-cni",
        before_nodes=True,
        service_account="aws-node",
        permissions=(POD_INTERFACES, TAG_INTERFACES),
        settings=NETWORK_SETTINGS,
    )
    yield AddonPlan(name="kube-proxy", before_nodes=True)
    yield AddonPlan(name="coredns", before_nodes=False)
    yield AddonPlan(name="eks-node-monitoring-agent", before_nodes=False)
    if buckets := tuple(use_of_buckets(storage)):
        yield AddonPlan(
            name="aws-mountpoint-s3-csi-driver",
            before_nodes=False,
            service_account="s3-csi-driver-sa",
            permissions=(*buckets, use_key(region, storage)),
        )
    if any(isinstance(item, LustrePlan) for item in storage):
        yield AddonPlan(name="aws-fsx-csi-driver", before_nodes=False)
