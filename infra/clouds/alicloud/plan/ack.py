"""A cluster of ACK, decided: its control plane and its add-ons.

Sources: ACK User Guide, "Use eRDMA in ACK" (the add-on, its order, and that GPU nodes take the driver that it calls
`ofed`), "Terway", "Cluster specifications" (gang scheduling and GPU topology need Pro); CS API, CreateCluster, `addons`
(the network plug-in and the one for volumes, which is two); "Use RRSA to authorize different pods to access different
cloud services" (the audience, the variables, and that ACK itself makes the OIDC provider in RAM); Alibaba Cloud
Credentials for Python, "OIDC role ARN" (ALIBABA_CLOUD_STS_REGION, ALIBABA_CLOUD_VPC_ENDPOINT_ENABLED); Elastic IP
Address, "Security hardening" (100.64.0.0/10 is reserved for the cloud's own services); pulumi-alicloud 4.0.0,
cs.ManagedKubernetes (pod vSwitches want terway-eniip among its own `addons`, which are read when it is made, and never
again).
"""

from __future__ import annotations

from collections.abc import Sequence

from infra.clouds.alicloud.plan.capacity import Spot
from infra.clouds.alicloud.plan.groups import GROUP_LABEL, vswitch_name
from infra.clouds.alicloud.plan.iam import use_of_own
from infra.clouds.alicloud.plan.model import AckPlan, AddonPlan, AlicloudGroupPlan, AlicloudNetworkPlan
from infra.clouds.alicloud.spec.cluster import Ack, AlicloudSpec
from infra.clouds.kubernetes.plan.identity import PodIdentity
from infra.clouds.kubernetes.plan.model import PodGroupPlan, TenantPlan
from infra.clouds.kubernetes.plan.pods import ERDMA as ERDMA_CARDS
from infra.clouds.kubernetes.plan.pods import pods
from infra.clouds.kubernetes.plan.tenancy import tenant_plan
from infra.clouds.kubernetes.spec.cluster import Components
from infra.plan.cloud_model import BucketPlan

SERVICES = "172.21.0.0/20"  # ACK's own proposal
BORN = (
    AddonPlan(name="terway-eniip", born=True, settings={"NetworkPolicy": "true"}),  # without a word it enforces none
    AddonPlan(name="csi-plugin", born=True, settings={}),
    AddonPlan(name="csi-provisioner", born=True, settings={}),
)
# One request is all cards of a node: without `allocateAllDevices` it would be the one card nearest by.
ERDMA_SETTINGS = {"preferDriver": "ofed", "allocateAllDevices": True}
ERDMA = AddonPlan(name="ack-erdma-controller", born=False, settings=ERDMA_SETTINGS)
OWNERS = Components(driver="image", device_plugin="cluster")  # ACK brings the driver and the device plug-in
NOTICE_SECONDS = 280  # ECS announces the end of spot capacity five minutes before


AUDIENCE = "sts.aliyuncs.com"
TOKEN_FILE = "/var/run/secrets/ack.alibabacloud.com/rrsa-tokens/token"
SERVICES_OF_THE_CLOUD, METADATA = "100.64.0.0/10", "100.100.100.200"


def ack_plan(
    stack: str,
    spec: AlicloudSpec,
    ack: Ack,
    groups: Sequence[AlicloudGroupPlan],
    network: AlicloudNetworkPlan,
    storage: Sequence[BucketPlan],
) -> AckPlan:
    """The control plane, and the tenant in it."""
    private = {vswitch_name("private", zone) for zone in spec.all_zones}
    erdma = any(group.fabric == "erdma" for group in groups)
    return AckPlan(
        name=f"gpufleet-{stack}",
        version=ack.version,
        spec="ack.pro.small",
        service_cidr=SERVICES,
        vswitches=tuple(each.name for each in network.vswitches if each.name in private),
        addons=(*BORN, *((ERDMA,) if erdma else ())),
        tenant=(tenant := _tenant(ack, spec.region, groups, storage)),
        tenant_permissions=tuple(use_of_own(tenant.namespace, storage)) if tenant else (),
    )


def _tenant(
    ack: Ack, region: str, groups: Sequence[AlicloudGroupPlan], storage: Sequence[BucketPlan]
) -> TenantPlan | None:
    nodes = [_pods(group, group.gpu) for group in groups if group.gpu is not None]
    if ack.tenant is None or not nodes:
        return None
    return tenant_plan(ack.tenant, nodes, OWNERS, _identity(region) if storage else None)


def _identity(region: str) -> PodIdentity:
    """RRSA. The names of ARNs are put beside these variables when RAM has told them (see `resources.ack`)."""
    return PodIdentity(
        audience=AUDIENCE,
        token_file=TOKEN_FILE,
        variables={
            "ALIBABA_CLOUD_OIDC_TOKEN_FILE": TOKEN_FILE,
            "ALIBABA_CLOUD_STS_REGION": region,
            "ALIBABA_CLOUD_VPC_ENDPOINT_ENABLED": "true",
        },
        services=SERVICES_OF_THE_CLOUD,
        metadata=METADATA,
    )


def _pods(group: AlicloudGroupPlan, gpu: str) -> PodGroupPlan:
    return pods(
        group.name,
        group.count,
        (gpu, group.gpus_per_node),
        labels={GROUP_LABEL: group.name},
        fabric=(ERDMA_CARDS, 1) if group.fabric == "erdma" else None,
        notice_seconds=NOTICE_SECONDS if isinstance(group.market, Spot) else None,
    )
