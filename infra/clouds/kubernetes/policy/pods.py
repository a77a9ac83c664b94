"""What pods may do, who may speak to them, and who may do what: for every object that a stack applies to Kubernetes.

Sources: Kubernetes, "Pod Security Standards" (baseline and restricted), "Good practices for Kubernetes Secrets",
"RBAC good practices", "Network Policies", "Managing Service Accounts" (a token without an audience is for the API).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Any

from infra.clouds.kubernetes.plan.network_check import METADATA
from infra.policy.networks import network_of
from infra.policy.rule import Resource, Stack, Violation, rule, stack_rule
from infra.policy.wire import false, items, mapping, true

PREFIX = "kubernetes:"
NAMESPACE = "kubernetes:core/v1:Namespace"
BINDINGS = tuple(f"kubernetes:rbac.authorization.k8s.io/v1:{kind}" for kind in ("ClusterRoleBinding", "RoleBinding"))
ROLES = tuple(f"kubernetes:rbac.authorization.k8s.io/v1:{kind}" for kind in ("ClusterRole", "Role"))
SERVICE, SECRET, POLICY = (
    "kubernetes:core/v1:Service", "kubernetes:core/v1:Secret", "kubernetes:networking.k8s.io/v1:NetworkPolicy"
)  # fmt: skip
RELEASE = "kubernetes:helm.sh/v3:Release"
NIC_POLICY = "kubernetes:mellanox.com/v1alpha1:NicClusterPolicy"
LEVELS = ("baseline", "restricted")
EVERYBODY = ("system:anonymous", "system:unauthenticated", "system:authenticated")
HARMLESS = ("NET_BIND_SERVICE",)
TOKENS_FOR = ("sts.aliyuncs.com", "sts.amazonaws.com", "pods.eks.amazonaws.com")  # who gives a cloud's role for one


def pod_specs(value: Any, path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every pod's spec in an object, however deep its kind holds it, with its path."""
    if isinstance(value, Mapping):
        if isinstance(value.get("containers"), list):
            yield path, value
        for key, inner in value.items():
            yield from pod_specs(inner, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from pod_specs(inner, f"{path}[{i}]")


def containers(spec: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for key in ("containers", "initContainers", "ephemeralContainers"):
        for i, container in enumerate(items(spec.get(key))):
            yield f"{key}[{i}]", mapping(container)


@rule("pod-shares-nothing-with-its-host")
def pod_shares_nothing_with_its_host(resource: Resource) -> Iterator[Violation]:
    """A pod in the host's network, process or IPC namespace sees and reaches what other tenants do."""
    for path, spec in _pods(resource):
        for key in ("hostNetwork", "hostPID", "hostIPC"):
            if not false(spec.get(key)):
                yield f"{path}.{key}", "must be left out: the pod would see what is its host's"
        for i, volume in enumerate(items(spec.get("volumes"))):
            if "hostPath" in mapping(volume):
                yield f"{path}.volumes[{i}].hostPath", "is the host's own file system; use a claim"


@rule("container-has-no-privileges")
def container_has_no_privileges(resource: Resource) -> Iterator[Violation]:
    """A privileged container is root on its host; one that may gain privileges, or has capabilities, is on the way."""
    for path, spec in _pods(resource):
        for place, container in containers(spec):
            security = mapping(container.get("securityContext"))
            if not false(security.get("privileged")):
                yield f"{path}.{place}.securityContext.privileged", "must be left out"
            if not false(security.get("allowPrivilegeEscalation", True)):
                yield f"{path}.{place}.securityContext.allowPrivilegeEscalation", "must be false"
            given = items(mapping(security.get("capabilities")).get("add"))
            if strange := [str(name) for name in given if name not in HARMLESS]:
                yield f"{path}.{place}.securityContext.capabilities.add", f"gives {', '.join(strange)}; leave them out"
            if security.get("procMount") not in (None, "Default"):
                yield f"{path}.{place}.securityContext.procMount", "must be left out"


@rule("pod-has-no-token")
def pod_has_no_token(resource: Resource) -> Iterator[Violation]:
    """Training asks the cluster's API for nothing: a token in every pod is one for whoever gets into it."""
    for path, spec in _pods(resource):
        if not false(spec.get("automountServiceAccountToken", True)):
            yield f"{path}.automountServiceAccountToken", "must be false"


@rule("projected-token-names-its-audience")
def projected_token_names_its_audience(resource: Resource) -> Iterator[Violation]:
    """A token that a volume brings into a pod is for a cloud's own service, and never for the cluster's API."""
    for path, spec in _pods(resource):
        for i, volume in enumerate(items(spec.get("volumes"))):
            for source in items(mapping(mapping(volume).get("projected")).get("sources")):
                token = mapping(source).get("serviceAccountToken")
                if token is not None and mapping(token).get("audience") not in TOKENS_FOR:
                    yield f"{path}.volumes[{i}].projected", f"must name an audience: one of {', '.join(TOKENS_FOR)}"


@rule("image-is-pinned")
def image_is_pinned(resource: Resource) -> Iterator[Violation]:
    """A tag can be moved to another image; a digest cannot (OCI image specification, descriptors)."""
    for path, spec in _pods(resource):
        for place, container in containers(spec):
            if "@sha256:" not in str(container.get("image", "")):
                yield f"{path}.{place}.image", "must name its digest, <image>@sha256:…"


@rule("operator-image-is-pinned", NIC_POLICY)
def operator_image_is_pinned(resource: Resource) -> Iterator[Violation]:
    """The images of the network operator's parts are named by digest, too (its guide, "Air-Gapped Environments")."""
    for path, part in mapping(resource.inputs.get("spec")).items():
        if "image" in mapping(part) and not str(part.get("version", "")).startswith("sha256:"):
            yield f"spec.{path}.version", "must be the image's digest, sha256:…"


@rule("secrets-are-no-variables")
def secrets_are_no_variables(resource: Resource) -> Iterator[Violation]:
    """What stands in an object is read by all who may read objects; a variable is shown by every dump and child."""
    for path, spec in _pods(resource):
        for place, container in containers(spec):
            for i, variable in enumerate(items(container.get("env"))):
                name, value = str(mapping(variable).get("name", "")), mapping(variable).get("value")
                if value and any(word in name.upper() for word in ("PASSWORD", "SECRET", "TOKEN", "ACCESS_KEY")):
                    yield f"{path}.{place}.env[{i}]", f"{name} stands in clear; mount a secret"


@rule("namespace-holds-pods-to-a-standard", NAMESPACE)
def namespace_holds_pods_to_a_standard(resource: Resource) -> Iterator[Violation]:
    """Without the label a namespace takes any pod, privileged ones too."""
    labels = mapping(mapping(resource.inputs.get("metadata")).get("labels"))
    if labels.get("pod-security.kubernetes.io/enforce") not in LEVELS:
        yield "metadata.labels", f"must set pod-security.kubernetes.io/enforce to {' or '.join(LEVELS)}"


@rule("nobody-is-the-clusters-admin", *BINDINGS)
def nobody_is_the_clusters_admin(resource: Resource) -> Iterator[Violation]:
    """A binding to everybody, or to cluster-admin, defeats every isolation inside the cluster."""
    if mapping(resource.inputs.get("roleRef")).get("name") in ("cluster-admin", "admin"):
        yield "roleRef", "must be a role of what is needed, not of everything"
    for i, subject in enumerate(items(resource.inputs.get("subjects"))):
        if mapping(subject).get("name") in EVERYBODY:
            yield f"subjects[{i}]", "is everybody who reaches the API"


@rule("roles-name-what-they-allow", *ROLES)
def roles_name_what_they_allow(resource: Resource) -> Iterator[Violation]:
    """A star grows with every kind that is ever added; reading secrets is being whoever they are of."""
    for i, each in enumerate(items(resource.inputs.get("rules"))):
        allowed = mapping(each)
        for key in ("verbs", "resources", "apiGroups"):
            if "*" in items(allowed.get(key)):
                yield f"rules[{i}].{key}", "must name what is needed, not '*'"
        if "secrets" in items(allowed.get("resources")) and not items(allowed.get("resourceNames")):
            yield f"rules[{i}].resources", "secrets must be named one by one, in `resourceNames`"


@rule("services-stay-inside", SERVICE)
def services_stay_inside(resource: Resource) -> Iterator[Violation]:
    """A model's port has no password, the rendezvous store no encryption: a load balancer or node port shows them to
    networks."""
    spec = mapping(resource.inputs.get("spec"))
    if spec.get("type", "ClusterIP") not in ("ClusterIP", "ExternalName"):
        yield "spec.type", "must be ClusterIP: it would be reached from outside the cluster"
    if items(spec.get("externalIPs")):
        yield "spec.externalIPs", "must be left out (CVE-2020-8554)"


@rule("no-secret-in-the-program", SECRET)
def no_secret_in_the_program(resource: Resource) -> Iterator[Violation]:
    """What the program writes stands in its state; a secret's store is the cluster's or the cloud's."""
    for key in ("data", "stringData"):
        if resource.inputs.get(key):
            yield key, "must not stand in a program; let the cluster fetch it from where it is kept"


@rule("network-policy-is-narrow", POLICY)
def network_policy_is_narrow(resource: Resource) -> Iterator[Violation]:
    """An empty rule allows everything (Kubernetes, "Network Policies", default allow)."""
    spec = mapping(resource.inputs.get("spec"))
    for key, peers in (("ingress", "from"), ("egress", "to")):
        for i, each in enumerate(items(spec.get(key))):
            named = items(mapping(each).get(peers))
            if not named:
                yield f"spec.{key}[{i}]", f"names nobody in `{peers}`, so it is about all"
            for j, peer in enumerate(named):
                if mapping(mapping(peer).get("ipBlock")).get("cidr") in ("0.0.0.0/0", "::/0"):
                    yield f"spec.{key}[{i}].{peers}[{j}]", "is the whole internet; name networks"
                if mapping(peer).get("namespaceSelector") == {}:
                    yield f"spec.{key}[{i}].{peers}[{j}]", "is every namespace; name one"


@rule("network-policy-leaves-metadata-out", POLICY)
def network_policy_leaves_metadata_out(resource: Resource) -> Iterator[Violation]:
    """Who reaches the metadata of a node takes on its role."""
    for i, each in enumerate(items(mapping(resource.inputs.get("spec")).get("egress"))):
        for j, peer in enumerate(items(mapping(each).get("to"))):
            block = mapping(mapping(peer).get("ipBlock"))
            allowed = network_of(block.get("cidr"))
            left_out = [network for cidr in items(block.get("except")) if (network := network_of(cidr)) is not None]
            for name, (address, _) in METADATA.items():
                metadata = ip_address(address)
                if allowed is not None and metadata in allowed and not any(metadata in each for each in left_out):
                    yield f"spec.egress[{i}].to[{j}]", f"reaches {name}; put {address} under `except`"


@rule("charts-are-pinned", RELEASE)
def charts_are_pinned(resource: Resource) -> Iterator[Violation]:
    """A chart without a version is another one tomorrow; over plain HTTP, anybody's."""
    if not resource.inputs.get("version"):
        yield "version", "must be given"
    repository = str(mapping(resource.inputs.get("repositoryOpts")).get("repo", ""))
    if repository.startswith("http://") or true(mapping(resource.inputs.get("repositoryOpts")).get("plainHttp")):
        yield "repositoryOpts.repo", "must be https:// or oci://"


@stack_rule("tenants-are-fenced-in")
def tenants_are_fenced_in(stack: Stack) -> Iterator[tuple[Resource | None, str, str]]:
    """A namespace of ours has a policy that denies all that is not allowed, both ways."""
    denied = {
        mapping(each.inputs.get("metadata")).get("namespace")
        for each in stack.of(POLICY)
        if _denies_all(mapping(each.inputs.get("spec")))
    }
    for space in stack.of(NAMESPACE):
        if mapping(space.inputs.get("metadata")).get("name") not in denied:
            yield space, "", "has no network policy that denies all by default, both ways"


def _denies_all(spec: Mapping[str, Any]) -> bool:
    both = {"Ingress", "Egress"} <= set(items(spec.get("policyTypes")))
    return both and spec.get("podSelector") == {} and not items(spec.get("ingress")) and not items(spec.get("egress"))


def _pods(resource: Resource) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if resource.type.startswith(PREFIX) and resource.type != RELEASE:
        yield from pod_specs(resource.inputs)
