"""The finished plan of a cluster of EKS: its control plane and its add-ons. Its nodes are the plan's groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from infra.clouds.kubernetes.plan.model import TenantPlan
from infra.plan.iam import Statement


@dataclass(frozen=True, kw_only=True)
class AddonPlan:
    """An add-on of EKS, in the version that EKS gives to the cluster's.

    before_nodes: nodes join by its help; the others need nodes to run on. service_account: the one whose pods take on a
    role with `permissions`, None for pods that ask AWS for nothing. settings: its configuration values.
    """

    name: str
    before_nodes: bool
    service_account: str | None = None
    permissions: tuple[Statement, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class EksPlan:
    """The control plane. Its secrets are encrypted with the stack's key.

    admins: ARNs of those who may do everything in it. api_from: the networks from which its API is reached over the
    internet; the VPC reaches it always. subnets: private ones of at least two zones. security_group: between it and the
    nodes. logs: what it writes to CloudWatch Logs. support: STANDARD is upgraded when its time is over, and never
    billed as extended support. tenant: of the cluster, None without one.
    tenant_permissions: of the role that the tenant's pods take on, empty where they need none.
    """

    name: str
    version: str
    admins: tuple[str, ...]
    api_from: tuple[str, ...]
    subnets: tuple[str, ...]
    security_group: str
    logs: tuple[str, ...] = ("api", "audit", "authenticator", "controllerManager", "scheduler")
    log_retention_days: int
    support: str = "STANDARD"
    addons: tuple[AddonPlan, ...]
    tenant: TenantPlan | None
    tenant_permissions: tuple[Statement, ...] = ()
