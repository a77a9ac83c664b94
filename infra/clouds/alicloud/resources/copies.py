"""Outputs of other stacks of the project, for a stack that copies from their buckets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pulumi import Output, StackReference

from infra import handover
from infra.clouds.alicloud.plan.model import CopyPlan

PROJECT = "organization/gpufleet"  # how a backend of one's own names its only organization and the project


def copied(plan: CopyPlan) -> Output[dict[str, Any]]:
    """Where a copy comes from, as plain JSON."""
    cluster_output = StackReference(f"{PROJECT}/{plan.stack}").get_output("cluster")
    return cluster_output.apply(lambda cluster: copied_from(plan, cluster or {}).model_dump(mode="json"))


def copied_from(plan: CopyPlan, cluster: Mapping[str, Any]) -> handover.Copied:
    """cluster: the other stack's handover, empty while it is not up."""
    storage = next((each for each in cluster.get("storage", ()) if each["name"] == plan.storage), {})
    return handover.Copied(
        stack=plan.stack,
        cloud=cluster.get("cloud", ""),
        region=cluster.get("region") or "",
        bucket=storage.get("source", ""),
        prefix=plan.prefix,
        to=plan.to,
    )
