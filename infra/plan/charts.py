"""The charts that a stack installs, whoever makes its cluster."""

from __future__ import annotations

from collections.abc import Mapping

from infra.plan.alicloud.plan import AlicloudPlan
from infra.plan.aws.plan import AwsPlan
from infra.plan.kubernetes.plan import ChartPlan, KubernetesPlan, TenantPlan
from infra.plan.plan import Plan

KEYS: Mapping[type[Plan], str] = {  # where a stack file says that a tenant gets charts
    KubernetesPlan: "cluster.components",
    AwsPlan: "cluster.eks.tenant",
    AlicloudPlan: "cluster.ack.tenant",
}


def installed(plan: Plan) -> tuple[ChartPlan, ...]:
    """None for a stack without a tenant of Kubernetes, and for a tenant whose cluster has charts of its own."""
    tenant: TenantPlan | None = None
    match plan:
        case KubernetesPlan():
            tenant = plan.tenant
        case AwsPlan():
            tenant = plan.eks.tenant if plan.eks else None
        case AlicloudPlan():
            tenant = plan.ack.tenant if plan.ack else None
        case _:
            pass
    return tenant.charts if tenant else ()
