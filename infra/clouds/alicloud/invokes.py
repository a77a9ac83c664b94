"""Results of Alibaba Cloud data sources in a rendered plan, where only the cloud knows the real ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def images(args: Mapping[str, Any]) -> dict[str, Any]:
    """A machine image reads as the pattern of its name."""
    return {**args, "id": "newest", "images": [{"id": f"newest:{args['nameRegex']}"}]}


def versions(args: Mapping[str, Any]) -> dict[str, Any]:
    """Which versions of Kubernetes are released, only `up` finds out."""
    return {**args, "id": "released", "metadatas": []}


def credential(args: Mapping[str, Any]) -> dict[str, Any]:
    """The authority of a cluster reads as the cluster's id."""
    authority = {"clusterCert": f"authority:{args['clusterId']}", "clientCert": "", "clientKey": ""}
    return {**args, "certificateAuthorities": [authority]}


INVOKES: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "alicloud:ecs/getImages:getImages": images,
    "alicloud:cs/getKubernetesVersion:getKubernetesVersion": versions,
    "alicloud:cs/getClusterCredential:getClusterCredential": credential,
}

# Objects that Alibaba Cloud fills in and the program reads: by type and property, the texts in them.
FILLED = {
    ("alicloud:cs/managedKubernetes:ManagedKubernetes", "rrsaMetadata"): ("ramOidcProviderArn", "rrsaOidcIssuerUrl")
}
