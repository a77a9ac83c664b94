"""Nodes as jobs see them: what a pod takes of one, how long it may save, and how nodes are near each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from infra.clouds.kubernetes.plan.model import PodGroupPlan
from infra.clouds.kubernetes.plan.tenant import GPU

EFA, ERDMA, HUGE_PAGES = "vpc.amazonaws.com/efa", "aliyun/erdma", "hugepages-2Mi"
EFA_HUGE_PAGES = "5120Mi"  # EKS User Guide, "Run machine learning training on Amazon EKS with Elastic Fabric Adapter"
SAVE_SECONDS = 600  # a checkpoint of tens of gigabytes to shared storage
SPOT_SECONDS = 110  # EC2 gives two minutes, of which some seconds go by before a pod hears of it
ZONE = "topology.kubernetes.io/zone"


def pods(
    name: str,
    count: int,
    gpus: tuple[str, int],
    *,
    labels: Mapping[str, str],
    fabric: tuple[str, int] | None = None,
    notice_seconds: int | None = None,
    topology: Sequence[str] = (ZONE,),
    mig: str | None = None,
) -> PodGroupPlan:
    """gpus: the model, and how many a node has. fabric: the device plug-in's resource, and how many a node has.

    notice_seconds: how long a pod lives after it has heard that spot capacity goes; None for what stays.
    """
    resources = {f"nvidia.com/mig-{mig}" if mig else GPU: str(gpus[1])}
    if fabric is not None:
        resources[fabric[0]] = str(fabric[1])
        resources |= {HUGE_PAGES: EFA_HUGE_PAGES} if fabric[0] == EFA else {}
    return PodGroupPlan(
        name=name,
        count=count,
        gpu=gpus[0],
        gpus_per_node=gpus[1],
        fabric=fabric[0] if fabric else "tcp",
        nodes=(),
        capacity="on-demand" if notice_seconds is None else "spot",
        labels=dict(labels),
        resources=resources,
        grace_seconds=notice_seconds or SAVE_SECONDS,
        levels=(*topology, "kubernetes.io/hostname"),
    )
