"""What is applied to Kubernetes: pods, who speaks to them, who may do what, charts."""

from __future__ import annotations

from typing import Any

from policy_samples import (
    EKS_CLUSTER,
    ENFORCING,
    TAGS,
    Insecure,
    Resource,
    Secure,
    eks,
    eks_nodes,
    kubernetes_nodes,
    made,
    network_plugin,
    of,
)

JOB = "kubernetes:batch/v1:Job"
DEPLOYMENT = "kubernetes:apps/v1:Deployment"
RUNTIME = "kubernetes:trainer.kubeflow.org/v1alpha1:TrainingRuntime"
NAMESPACE, SERVICE = "kubernetes:core/v1:Namespace", "kubernetes:core/v1:Service"
POLICY = "kubernetes:networking.k8s.io/v1:NetworkPolicy"
ROLE, BINDING = (f"kubernetes:rbac.authorization.k8s.io/v1:{kind}" for kind in ("ClusterRole", "ClusterRoleBinding"))
SECRET, RELEASE = "kubernetes:core/v1:Secret", "kubernetes:helm.sh/v3:Release"
IMAGE = "a/b@sha256:" + "0" * 64
ENFORCE = "pod-security.kubernetes.io/enforce"


def job(kind: str = JOB, *, container: dict[str, Any] | None = None, **pod: Any) -> Resource:
    """A sound pod but for what is given."""
    sound = {"name": "a", "image": IMAGE, "securityContext": {"allowPrivilegeEscalation": False}}
    spec = {"automountServiceAccountToken": False, "containers": [{**sound, **(container or {})}], **pod}
    return made(kind, spec={"template": {"spec": spec}})


def secured(**security: Any) -> Resource:
    return job(container={"securityContext": {"allowPrivilegeEscalation": False, **security}})


def space(level: str | None = "baseline") -> Resource:
    labels = {ENFORCE: level} if level else {}
    return made(NAMESPACE, "space", metadata={"name": "t", "labels": labels})


def policy(**spec: Any) -> Resource:
    sound = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    return made(POLICY, "policy", metadata={"name": "deny", "namespace": "t"}, spec={**sound, **spec})


def role(**allowed: Any) -> Resource:
    return made(ROLE, rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], **allowed}])


def bound(role_name: str, subject: str = "trainer") -> Resource:
    return made(BINDING, roleRef={"kind": "ClusterRole", "name": role_name}, subjects=[{"name": subject}])


def chart(**inputs: Any) -> Resource:
    return made(RELEASE, **{"chart": "a", "version": "1.0.0", "repositoryOpts": {"repo": "https://a"}, **inputs})


ENFORCED, NODE_METADATA = "eks-enforces-network-policies", "kubernetes-node-metadata"
HOST, ROOT = "pod-shares-nothing-with-its-host", "container-has-no-privileges"
TOKEN_AUDIENCE, METADATA = "projected-token-names-its-audience", "network-policy-leaves-metadata-out"


def projected(**token: Any) -> Resource:
    """A pod with a token of its service account in a volume."""
    return job(volumes=[{"name": "a", "projected": {"sources": [{"serviceAccountToken": {"path": "t", **token}}]}}])


def shared_cards(version: str) -> Resource:
    plugin = {"repository": "nvcr.io/nvidia/mellanox", "image": "k8s-rdma-shared-dev-plugin", "version": version}
    return made("kubernetes:mellanox.com/v1alpha1:NicClusterPolicy", spec={"rdmaSharedDevicePlugin": plugin})


def out_to(cidr: str, *left_out: str) -> Resource:
    return policy(egress=[{"to": [{"ipBlock": {"cidr": cidr, "except": list(left_out)}}]}])


INSECURE: Insecure = {
    "a plug-in by its tag": of("operator-image-is-pinned", shared_cards("network-operator-v26.4.1")),
    "a token for the API by a volume": of(TOKEN_AUDIENCE, projected()),
    "a token for the API by its name": of(TOKEN_AUDIENCE, projected(audience="https://kubernetes.default.svc")),
    "a token for nobody knows whom": of(TOKEN_AUDIENCE, projected(audience="[unknown]")),
    "a way out to the metadata of ECS": of(METADATA, out_to("100.64.0.0/10")),
    "a way out to the metadata beside another hole": of(METADATA, out_to("100.64.0.0/10", "100.64.0.0/24")),
    "a way out to the metadata of EC2": of(METADATA, out_to("169.254.0.0/16")),
    "a way out to the metadata by IPv6": of(METADATA, out_to("fd00:ec2::/32")),
    "the host's network": of(HOST, job(hostNetwork=True)),
    "the host's processes": of(HOST, job(hostPID=True)),
    "the host's IPC": of(HOST, job(hostIPC=True)),
    "a folder of the host": of(HOST, job(volumes=[{"name": "a", "hostPath": {"path": "/"}}])),
    "the host's network in a deployment": of(HOST, job(DEPLOYMENT, hostNetwork=True)),
    "the host's network deep in a runtime": of(
        HOST,
        made(RUNTIME, spec={"template": {"spec": {"replicatedJobs": [{"template": job(hostNetwork=True).inputs}]}}}),
    ),
    "a privileged container": of(ROOT, secured(privileged=True)),
    "a privileged init container": of(
        ROOT, job(initContainers=[{"image": IMAGE, "securityContext": {"privileged": True}}])
    ),
    "a container that may gain privileges": of(ROOT, secured(allowPrivilegeEscalation=True)),
    "a container that does not say": of(ROOT, job(container={"securityContext": {}})),
    "the capability to administer": of(ROOT, secured(capabilities={"add": ["SYS_ADMIN"]})),
    "the capability to lock memory": of(ROOT, secured(capabilities={"add": ["IPC_LOCK"]})),
    "all capabilities": of(ROOT, secured(capabilities={"add": ["ALL"]})),
    "an unmasked /proc": of(ROOT, secured(procMount="Unmasked")),
    "a token": of("pod-has-no-token", job(automountServiceAccountToken=True)),
    "a token by default": of(
        "pod-has-no-token", made(JOB, spec={"template": {"spec": {"containers": [{"image": IMAGE}]}}})
    ),
    "an image by tag": of("image-is-pinned", job(container={"image": "a/b:latest"})),
    "an image without a tag": of("image-is-pinned", job(container={"image": "a/b"})),
    "a password as a variable": of(
        "secrets-are-no-variables", job(container={"env": [{"name": "DB_PASSWORD", "value": "hunter2"}]})
    ),
    "an access key as a variable": of(
        "secrets-are-no-variables", job(container={"env": [{"name": "AWS_SECRET_ACCESS_KEY", "value": "x"}]})
    ),
    "a namespace without a standard": of("namespace-holds-pods-to-a-standard", space(None), policy()),
    "a namespace of privileged pods": of("namespace-holds-pods-to-a-standard", space("privileged"), policy()),
    "a cluster's admin": of("nobody-is-the-clusters-admin", bound("cluster-admin")),
    "a role for the unauthenticated": of("nobody-is-the-clusters-admin", bound("view", "system:unauthenticated")),
    "a role for all users": of("nobody-is-the-clusters-admin", bound("view", "system:authenticated")),
    "all verbs": of("roles-name-what-they-allow", role(verbs=["*"])),
    "all kinds": of("roles-name-what-they-allow", role(resources=["*"])),
    "all API groups": of("roles-name-what-they-allow", role(apiGroups=["*"])),
    "all secrets": of("roles-name-what-they-allow", role(resources=["secrets"])),
    "a load balancer": of("services-stay-inside", made(SERVICE, spec={"type": "LoadBalancer"})),
    "a node port": of("services-stay-inside", made(SERVICE, spec={"type": "NodePort"})),
    "an external address": of("services-stay-inside", made(SERVICE, spec={"externalIPs": ["1.2.3.4"]})),
    "a secret in the program": of("no-secret-in-the-program", made(SECRET, stringData={"a": "b"})),
    "a secret in base64": of("no-secret-in-the-program", made(SECRET, data={"a": "Yg=="})),
    "a way in for all": of("network-policy-is-narrow", policy(ingress=[{}])),
    "a way out to the internet": of(
        "network-policy-is-narrow", policy(egress=[{"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}])
    ),
    "a way in from every namespace": of(
        "network-policy-is-narrow", policy(ingress=[{"from": [{"namespaceSelector": {}}]}])
    ),
    "a chart of any version": of("charts-are-pinned", chart(version=None)),
    "a chart over plain HTTP": of("charts-are-pinned", chart(repositoryOpts={"repo": "http://a"})),
    "a namespace without a fence": of("tenants-are-fenced-in", space()),
    "a fence one way": of("tenants-are-fenced-in", space(), policy(policyTypes=["Ingress"])),
    "a cluster whose network plug-in enforces no policy": of(ENFORCED, eks(), network_plugin({"env": {}})),
    "a cluster whose network plug-in has no settings": of(ENFORCED, eks(), network_plugin(None)),
    "a cluster that switches enforcement off": of(ENFORCED, eks(), network_plugin({"enableNetworkPolicy": "false"})),
    "a cluster with unknown settings": of(ENFORCED, eks(), network_plugin("[unknown]")),
    "a cluster with settings that are no document": of(ENFORCED, eks(), network_plugin("a: [")),
    "a cluster without a network plug-in": of(ENFORCED, eks(), network_plugin(ENFORCING, name="coredns")),
    "a cluster beside one that enforces": of(
        ENFORCED, eks(), network_plugin(ENFORCING, cluster=made(EKS_CLUSTER, "other", tags=TAGS))
    ),
    "nodes whose pods reach the node's role": of(NODE_METADATA, *kubernetes_nodes(httpPutResponseHopLimit=2)),
    "nodes with an unknown hop limit": of(NODE_METADATA, *kubernetes_nodes(httpPutResponseHopLimit=None)),
    "nodes with a second metadata address": of(NODE_METADATA, *kubernetes_nodes(httpProtocolIpv6="enabled")),
    "nodes from a template of somebody else": of(NODE_METADATA, eks_nodes()),
    "a fence around some pods": of("tenants-are-fenced-in", space(), policy(podSelector={"matchLabels": {"a": "b"}})),
}
SECURE: Secure = {
    "a job": [job()],
    "a deployment": [job(DEPLOYMENT)],
    "a job with a claim": [job(volumes=[{"name": "a", "persistentVolumeClaim": {"claimName": "a"}}])],
    "a job with memory as a disk": [job(volumes=[{"name": "a", "emptyDir": {"medium": "Memory"}}])],
    "a job with a file": [job(volumes=[{"name": "a", "configMap": {"name": "a"}}])],
    "all capabilities dropped": [secured(capabilities={"drop": ["ALL"]})],
    "a low port": [secured(capabilities={"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]})],
    "a plain variable": [job(container={"env": [{"name": "NCCL_DEBUG", "value": "INFO"}]})],
    "a secret by reference": [
        job(container={"env": [{"name": "DB_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}]})
    ],
    "a fenced tenant": [space(), policy()],
    "a restricted tenant": [space("restricted"), policy()],
    "a tenant whose pods speak to each other": [
        space(),
        policy(),
        made(
            POLICY,
            "inside",
            metadata={"name": "inside", "namespace": "t"},
            spec={"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"from": [{"podSelector": {}}]}]},
        ),
    ],
    "a plug-in by its digest": [shared_cards(f"sha256:{'0' * 64}")],
    "a token for the cloud's STS": [projected(audience="sts.aliyuncs.com")],
    "a volume of other sources": [
        job(volumes=[{"name": "a", "projected": {"sources": [{"configMap": {"name": "a"}}]}}])
    ],
    "a way out to the cloud's services": [out_to("100.64.0.0/10", "100.100.100.200/32")],
    "a way out to one network": [policy(egress=[{"to": [{"ipBlock": {"cidr": "10.0.0.0/16"}}]}])],
    "a way in from one namespace": [
        policy(ingress=[{"from": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}]}])
    ],
    "a role that reads pods": [role()],
    "a role of one secret": [role(resources=["secrets"], resourceNames=["registry"])],
    "a binding of a small role": [bound("pod-reader")],
    "a service inside": [made(SERVICE, spec={"clusterIP": "None"})],
    "a service by default": [made(SERVICE, spec={"ports": [{"port": 80}]})],
    "a cluster that enforces network policies": [eks(endpointPublicAccess=False), network_plugin(ENFORCING)],
    "a cluster that does so by YAML": [
        eks(endpointPublicAccess=False),
        network_plugin("enableNetworkPolicy: true\nenv: {WARM_IP_TARGET: '1'}\n"),
    ],
    "nodes whose role ends at the host": kubernetes_nodes(),
    "nodes without a metadata service": kubernetes_nodes(httpEndpoint="disabled", httpPutResponseHopLimit=None),
    "a chart": [chart()],
    "a chart of a registry": [chart(chart="oci://a/b", repositoryOpts=None)],
}
