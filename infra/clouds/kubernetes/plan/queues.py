"""Kueue's objects: jobs wait until all of their nodes are free, and get those that are near each other.

Source: Kueue 0.19, "Concepts" (ClusterQueue, ResourceFlavor, Topology Aware Scheduling) and its API, v1beta2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from infra.clouds.kubernetes.plan.model import Manifest, Object, PodGroupPlan
from infra.clouds.kubernetes.plan.tenant import DEVELOPMENT, GPU, PRODUCTION, of, qualified

API, CHART = "kueue.x-k8s.io/v1beta2", "kueue"
SPOT_TAINT = "gpufleet.io/spot"
QUEUE = "jobs"


def queues(name: str, groups: Sequence[PodGroupPlan]) -> Iterator[Manifest]:
    """A flavor for each group, tried in the order of the stack file; one queue of the tenant's, `jobs`."""
    for group in groups:
        own = qualified(name, group.name)
        levels = {"levels": [{"nodeLabel": label} for label in group.levels]}
        yield Manifest(body=of(API, "Topology", own) | {"spec": levels}, chart=CHART)
        flavor = {"nodeLabels": dict(group.labels), "tolerations": tolerations(group), "topologyName": own}
        yield Manifest(body=of(API, "ResourceFlavor", own) | {"spec": flavor}, chart=CHART)
    yield Manifest(body=of(API, "ClusterQueue", name) | {"spec": _queue(name, groups)}, chart=CHART)
    yield Manifest(body=of(API, "LocalQueue", QUEUE, name) | {"spec": {"clusterQueue": name}}, chart=CHART)
    for work, value in ((PRODUCTION, 100_000), (DEVELOPMENT, 1_000)):
        yield Manifest(body=of(API, "WorkloadPriorityClass", qualified(name, work)) | {"value": value}, chart=CHART)


def tolerations(group: PodGroupPlan) -> list[Object]:
    """Of the taints that keep others off the nodes; a node that is going away is left at once."""
    tolerated: list[Object] = [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]
    if group.capacity == "spot":
        tolerated.append({"key": SPOT_TAINT, "operator": "Equal", "value": "true", "effect": "NoSchedule"})
    return tolerated


def _queue(name: str, groups: Sequence[PodGroupPlan]) -> Object:
    """Higher priority pushes out lower, which then goes on from its checkpoint; a queue never takes a part of a job."""
    covered = list(dict.fromkeys(resource for group in groups for resource in group.resources))
    flavors = [
        {
            "name": qualified(name, group.name),
            "resources": [{"name": resource, "nominalQuota": _quota(group, resource)} for resource in covered],
        }
        for group in groups
    ]
    return {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
        "queueingStrategy": "BestEffortFIFO",
        "preemption": {"withinClusterQueue": "LowerPriority"},
        "resourceGroups": [{"coveredResources": covered, "flavors": flavors}],
    }


def _quota(group: PodGroupPlan, resource: str) -> str:
    amount = group.resources.get(resource, "0")
    number = amount.rstrip("MGi")
    return f"{int(number) * group.count}{amount.removeprefix(number)}"
