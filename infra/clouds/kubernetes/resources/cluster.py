"""How a tenant of an existing cluster is declared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pulumi import Output

from infra import handover
from infra.clouds.kubernetes.plan.model import KubernetesPlan
from infra.clouds.kubernetes.resources.objects import Tenant, TenantArgs


def declare(plan: KubernetesPlan, root: Path) -> Output[dict[str, Any]]:
    """Declares the tenant and returns its handover as plain JSON."""
    kubeconfig = str(Path(plan.access.kubeconfig).expanduser())
    Tenant(plan.stack, TenantArgs(plan=plan.tenant, kubeconfig=kubeconfig, context=plan.access.context))
    return Output.from_input(handover_of(plan).to_json())


def handover_of(plan: KubernetesPlan) -> handover.Handover:
    """The handover: nobody logs in, and the nodes are the cluster's own."""
    return handover.Handover(
        stack=plan.stack,
        cloud=plan.cloud,
        region=None,
        access=handover.Access(user="", key_file="", known_hosts_file=""),
        nodes=(),
        groups=tuple(map(handover.Group.of, plan.groups)),
        storage=tuple(handover.Storage.of(storage, "") for storage in plan.storage),
        store=handover.Store(host="", address=""),
        environment=handover.Environment(python="python"),
        kubernetes=handover.Kubernetes(cluster=plan.access.context),
    )
