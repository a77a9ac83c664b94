"""How pods of a tenant take on a role of the cloud: by a token of their service account, which the kubelet renews.

No webhook puts it into pods: it stands in their template, so that what a pod gets is seen in the plan.

Source: Kubernetes, "Launch a Pod using service account token projection".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from infra.clouds.kubernetes.plan.model import Manifest, Object
from infra.clouds.kubernetes.plan.tenant import of

CONFIG = "cloud-role"  # the ConfigMap whose entries become variables of the pods; also of the token's volume
POLICY = "cloud-services"
TOKEN_SECONDS = 3600  # the kubelet renews it after 80 % of that
HTTPS = 443


@dataclass(frozen=True, kw_only=True)
class PodIdentity:
    """audience: the only service that accepts the token. token_file: where a container finds it.

    variables: what the cloud's SDKs read, but for what only the cloud knows, which is put beside it when it is there.
    services: the network of the cloud's services, where tokens are exchanged and the data lies. metadata: its address
    of instance metadata, which pods may not reach.
    """

    audience: str
    token_file: str
    variables: Mapping[str, str]
    services: str
    metadata: str

    @property
    def volume(self) -> Object:
        token = {
            "audience": self.audience,
            "expirationSeconds": TOKEN_SECONDS,
            "path": PurePosixPath(self.token_file).name,
        }
        return {"name": CONFIG, "projected": {"sources": [{"serviceAccountToken": token}]}}

    @property
    def mount(self) -> Object:
        return {"name": CONFIG, "mountPath": str(PurePosixPath(self.token_file).parent), "readOnly": True}

    @property
    def environment(self) -> Object:
        """A pod does not start while the ConfigMap is missing."""
        return {"configMapRef": {"name": CONFIG}}

    def policy(self, namespace: str) -> Manifest:
        """Pods reach the cloud's services by HTTPS, and its metadata by nothing."""
        block = {"cidr": self.services, "except": [f"{self.metadata}/32"]}
        egress = [{"to": [{"ipBlock": block}], "ports": [{"port": HTTPS, "protocol": "TCP"}]}]
        body = of("networking.k8s.io/v1", "NetworkPolicy", POLICY, namespace)
        return Manifest(body=body | {"spec": {"podSelector": {}, "policyTypes": ["Egress"], "egress": egress}})
