"""The handover of a cluster whose nodes are found by their tags: fleets and scaling groups have no fixed members."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pulumi import Input, Output

from infra import handover
from infra.plan.cloud_model import CloudPlan

NODE_PYTHON = "/opt/gpufleet/venv/bin/python"
STORE, STORAGE_ROLE = "", "."  # beside storage, whose names are neither


def handed_over(
    plan: CloudPlan,
    access: handover.Access,
    store: Input[str],
    storage: Mapping[str, Input[str]],
    storage_role: Input[str],
    kubernetes: str | None,
) -> Output[dict[str, Any]]:
    """Plain JSON. store: the address where nodes reach the rendezvous store, empty where only discovery knows it.

    storage: by name, what is mounted. storage_role: of the sessions of jobs and tenants, empty without one.
    kubernetes: the cluster's name, None for plain machines.
    """

    def assembled(values: Mapping[str, str]) -> dict[str, Any]:
        return handover.Handover(
            stack=plan.stack,
            cloud=plan.cloud,
            region=plan.region,
            access=access,
            nodes=(),
            groups=tuple(map(handover.Group.of, plan.groups)),
            storage=tuple(handover.Storage.of(item, values[item.name]) for item in plan.storage),
            store=handover.Store(
                host=plan.store.group if plan.store else "",
                address=values[STORE],
                port=plan.store.port if plan.store else 0,
            ),
            environment=handover.Environment(python=NODE_PYTHON),
            kubernetes=handover.Kubernetes(cluster=kubernetes) if kubernetes else None,
            storage_role=values[STORAGE_ROLE],
        ).to_json()

    return Output.all(**{STORE: store, STORAGE_ROLE: storage_role, **storage}).apply(assembled)
