"""A cluster of ACK, decided: its control plane and its add-ons.

Sources: ACK User Guide, "Use eRDMA in ACK" (the add-on, its order, and that GPU nodes take the driver that it calls
`ofed`), "Terway", "Cluster specifications" (gang scheduling and GPU topology need Pro); pulumi-alicloud 4.0.0,
cs.ManagedKubernetes (its own `addons` are read when it is made, and never again: add-ons are resources of their own).
"""

from __future__ import annotations

from collections.abc import Sequence

from infra.plan.alicloud.groups import vswitch_name
from infra.plan.alicloud.plan import AckPlan, AddonPlan, AlicloudGroupPlan, AlicloudNetworkPlan
from infra.spec.alicloud import AlicloudSpec

SERVICES = "172.21.0.0/20"  # ACK's own proposal
TERWAY = AddonPlan(name="terway-eniip", before_gpu_nodes=True, settings={})
ERDMA = AddonPlan(name="ack-erdma-controller", before_gpu_nodes=True, settings={"preferDriver": "ofed"})
STORAGE = AddonPlan(name="csi-plugin", before_gpu_nodes=True, settings={})


def ack_plan(
    stack: str, asked: AlicloudSpec, groups: Sequence[AlicloudGroupPlan], network: AlicloudNetworkPlan
) -> AckPlan | None:
    """None for plain machines."""
    if asked.ack is None:
        return None
    private = {vswitch_name("private", zone) for zone in asked.all_zones}
    erdma = any(group.fabric == "erdma" for group in groups)
    return AckPlan(
        name=f"gpufleet-{stack}",
        version=asked.ack.version,
        spec="ack.pro.small",
        service_cidr=SERVICES,
        vswitches=tuple(each.name for each in network.vswitches if each.name in private),
        addons=(TERWAY, STORAGE, *((ERDMA,) if erdma else ())),
    )
