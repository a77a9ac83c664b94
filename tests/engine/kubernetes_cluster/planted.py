"""Objects as the plan makes them, with one mistake each, and a word that the API server says of it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

Object = dict[str, Any]
Change = Callable[[Object], object]


def pod(body: Object) -> Object:
    return body["spec"]["template"]["spec"]


def limits(body: Object) -> Object:
    return pod(body)["containers"][0]["resources"]["limits"]


def flavor(body: Object) -> Object:
    return body["spec"]["resourceGroups"][0]["flavors"][0]


PLANTED: dict[str, tuple[str, Change, str]] = {
    "wrong kind": ("Job", lambda b: b.update(kind="Jbo"), 'no matches for kind "Jbo"'),
    "dead version": ("PodDisruptionBudget", lambda b: b.update(apiVersion="policy/v1beta1"), "no matches"),
    "old Kueue": ("ClusterQueue", lambda b: b.update(apiVersion="kueue.x-k8s.io/v1alpha2"), "no matches"),
    "field typo in a job": ("Job", lambda b: b["spec"].update(completion=4), "completion"),
    "field typo in a pod": ("Job", lambda b: pod(b).update(nodeSelecter={}), "nodeSelecter"),
    "field typo in a container": ("Job", lambda b: pod(b)["containers"][0].update(img="x"), "img"),
    "half a GPU": ("Job", lambda b: limits(b).update({"nvidia.com/gpu": "0.5"}), "must be an integer"),
    "bad quantity": ("Job", lambda b: limits(b).update({"nvidia.com/gpu": "eight"}), "quantit"),
    "bad share": ("ResourceQuota", lambda b: b["spec"]["hard"].update(pods="many"), "quantit"),
    "requests beside limits": (
        "Job",
        lambda b: pod(b)["containers"][0]["resources"]["requests"].update({"nvidia.com/gpu": "4"}),
        "must be equal to nvidia.com/gpu limit",
    ),
    "restart policy of a job": ("Job", lambda b: pod(b).update(restartPolicy="Always"), "restartPolicy"),
    "bad selector": (
        "PodDisruptionBudget",
        lambda b: b["spec"]["selector"]["matchExpressions"][0].update(operator="Has"),
        "operator",
    ),
    "bad label": ("Namespace", lambda b: b["metadata"]["labels"].update(team="a b"), "metadata.labels"),
    "bad name": ("Namespace", lambda b: b["metadata"].update(name="Research"), "metadata.name"),
    "bad port": ("NetworkPolicy", lambda b: b["spec"].update(egress=[{"ports": [{"port": 70000}]}]), "port"),
    "bad policy type": ("NetworkPolicy", lambda b: b["spec"].update(policyTypes=["Inward"]), "policyTypes"),
    "mount without a volume": ("Job", lambda b: pod(b).update(volumes=[]), "volumeMounts"),
    "huge pages alone": (
        "Job",
        lambda b: pod(b)["containers"][0].update(resources={"limits": {"hugepages-2Mi": "1Gi"}}),
        "HugePages",
    ),
    "cohort of an older Kueue": ("ClusterQueue", lambda b: b["spec"].update(cohort="all"), "cohort"),
    "flavor without a quota": ("ClusterQueue", lambda b: flavor(b)["resources"].pop(), "resources"),
    "topology without labels": ("ResourceFlavor", lambda b: b["spec"].update(nodeLabels={}), "nodeLabel"),
    "hostname above a rack": (
        "Topology",
        lambda b: b["spec"].update(levels=[{"nodeLabel": "kubernetes.io/hostname"}, {"nodeLabel": "rack"}]),
        "hostname",
    ),
    "misspelt number of nodes": ("TrainJob", lambda b: b["spec"]["trainer"].update(numNode=4), "numNode"),
    "ranks as a word": ("TrainJob", lambda b: b["spec"]["trainer"].update(numProcPerNode="auto"), "numProcPerNode"),
    "overrides of an older Trainer": ("TrainJob", lambda b: b["spec"].update(podTemplateOverrides=[]), "podTemplate"),
    "ranks in a runtime": (
        "TrainingRuntime",
        lambda b: b["spec"]["mlPolicy"]["torch"].update(numProcPerNode=8),
        "numProcPerNode",
    ),
    "unknown restart strategy": (
        "JobSet",
        lambda b: b["spec"]["failurePolicy"].update(restartStrategy="Again"),
        "restartStrategy",
    ),
    "scaler without a trigger": ("ScaledObject", lambda b: b["spec"].pop("triggers"), "triggers"),
    "priority of the system": ("PriorityClass", lambda b: b.update(value=2_000_000_000), "value"),
    "rule without an expression": (
        "PrometheusRule",
        lambda b: b["spec"]["groups"][0]["rules"][0].pop("expr"),
        "expr",
    ),
}


def planted(objects: Mapping[str, Object], case: str) -> Object:
    """The object of a case, with its mistake."""
    kind, change, _ = PLANTED[case]
    body = copy.deepcopy(objects[kind])
    change(body)
    return body
