"""The stack file of `cloud: kubernetes`: a tenant of a cluster that is there already, whosever it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, Strict, ValidationInfo, field_validator, model_validator

from infra.spec.cluster import Access, Budget, Cluster, Section, at_least_one, repeated_names, unique_names
from infra.spec.errors import ContradictionError, Mistake, quoted, shown
from infra.spec.fields import Count, Flag, GpuName, KeyFile, MigProfile, MountPath, Name, like

SYSTEM = ("default", "kube-node-lease", "kube-public", "kube-system")
# The device plug-ins of the fabrics (facts of their charts): EFA, eRDMA, the network operator's shared or SR-IOV ones.
FABRICS = r"vpc\.amazonaws\.com/efa|aliyun/erdma|rdma/[a-z0-9_]+|nvidia\.com/[a-z0-9_]+"


def _label(value: Any) -> Any:
    if not isinstance(value, str):
        raise ValueError(f"must be a text, not {shown(value)}; put it in quotes")
    return like(
        r"([A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?)?", "label value: at most 63 letters, digits, '-', '_' or '.'"
    )(value)


def _tenant(text: str) -> str:
    if text in SYSTEM or text.startswith("kube-"):
        raise ValueError(f"{quoted(text)} is the cluster's own; choose another")
    return text


def _image(text: str) -> str:
    like(r"\w[\w.:/-]*(@sha256:[0-9a-f]{64})?", "image")(text)
    if "@sha256:" not in text:
        raise ValueError(f"{quoted(text)} can change under its tag: name its digest, <image>@sha256:<64 digits>")
    return text


Tenant = Annotated[Name, AfterValidator(_tenant)]
Image = Annotated[str, AfterValidator(_image)]
LabelKey = Annotated[
    str,
    AfterValidator(
        like(r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?", "label such as example.com/rack")
    ),
]
Labels = dict[LabelKey, Annotated[str, BeforeValidator(_label)]]
Supply = Literal["named", "strict"]  # what is not known by its digest is named, or refused
Context = Annotated[str, AfterValidator(like(r"\w[\w@.:/-]{0,252}", "context of a kubeconfig"))]


class PodFabric(Section):
    """resource: what the fabric's device plug-in offers. count: of one node, all of which a rank group takes."""

    resource: Annotated[str, AfterValidator(like(FABRICS, "fabric resource such as vpc.amazonaws.com/efa or rdma/ib"))]
    count: Annotated[Count, Field(le=32)]


class PodNodes(Section):
    """Equal nodes of the cluster. labels: by which they are known. topology: node labels from the widest level to the
    narrowest, by which ranks are kept together; the node itself is the last."""

    name: Name
    gpu: GpuName
    gpus: Annotated[Count, Field(le=16)]
    count: Annotated[Count, Field(le=1000)]
    capacity: Literal["on-demand", "spot"] = "on-demand"
    labels: Labels
    fabric: PodFabric | None = None
    topology: tuple[LabelKey, ...] = ()
    mig: MigProfile | None = None

    @field_validator("labels", mode="after")
    @classmethod
    def _known_by_something(cls, labels: Labels) -> Labels:
        if not labels:
            raise ValueError("is empty; it needs at least one label that the nodes have")
        return labels


class Claim(Section):
    """A volume that every rank mounts, for data and checkpoints. storage_class: one whose volumes can be shared."""

    name: Name
    kind: Literal["volume"]
    mount: MountPath
    size_gib: Annotated[int, Strict(), Field(ge=1, le=1_000_000)]
    storage_class: Name


class Components(Section):
    """What the stack installs, and what is there already. driver: who brings NVIDIA's driver and container toolkit: the
    node's image, or the GPU operator. device_plugin: who offers `nvidia.com/gpu`."""

    driver: Literal["image", "operator"]
    device_plugin: Literal["cluster", "operator"]
    install: Flag = True


class Serving(Section):
    """A deployment of the tenant's that follows the load of its GPUs, by KEDA."""

    deployment: Name
    min: Count
    max: Annotated[Count, Field(le=1000)]

    @model_validator(mode="after")
    def _in_order(self) -> Serving:
        if self.min > self.max:
            raise ContradictionError([(("min",), f"{self.min} is more than `max`, {self.max}")])
        return self


class Tenancy(Section):
    """A tenant: its namespace's name, its jobs' image, and the volumes that every rank of them mounts.

    form: what a job becomes; a plain job needs no operator. supply: `strict` refuses charts without a known digest.
    """

    name: Tenant
    image: Image
    form: Literal["trainjob", "jobset", "job"] = "trainjob"
    supply: Supply = "named"
    volumes: Annotated[tuple[Claim, ...], AfterValidator(unique_names)]
    serving: Serving | None = None


class OwnTenancy(Tenancy):
    """A tenant of a cluster that the same stack makes."""

    volumes: Annotated[tuple[Claim, ...], AfterValidator(at_least_one), AfterValidator(unique_names)]


class KubernetesSpec(Cluster):
    """One tenant: its namespace, its share, its queues. form: what a job becomes; a plain job needs no operator."""

    cloud: Literal["kubernetes"]
    kubeconfig: KeyFile
    context: Context
    tenant: Tenant
    image: Image
    form: Literal["trainjob", "jobset", "job"] = "trainjob"
    supply: Supply = "named"
    components: Components
    nodes: Annotated[tuple[PodNodes, ...], AfterValidator(at_least_one)]
    storage: Annotated[tuple[Claim, ...], AfterValidator(unique_names)] = ()
    serving: Serving | None = None

    @property
    def tenancy(self) -> Tenancy:
        return Tenancy(
            name=self.tenant,
            image=self.image,
            form=self.form,
            supply=self.supply,
            volumes=self.storage,
            serving=self.serving,
        )

    @field_validator("nodes", mode="after")
    @classmethod
    def _groups_differ(cls, groups: tuple[PodNodes, ...], info: ValidationInfo) -> tuple[PodNodes, ...]:
        if mistakes := [*repeated_names(groups, "nodes"), *_repeated_levels(groups)]:
            raise ContradictionError(mistakes)
        return groups

    @field_validator("budget", mode="after")
    @classmethod
    def _nobody_is_billed(cls, budget: Budget) -> Budget:
        raise ValueError("cannot stand here: the cluster is billed elsewhere, and no price of it is known")

    @field_validator("access", mode="after")
    @classmethod
    def _nobody_logs_in(cls, access: Access) -> Access:
        if access.public_key is not None:
            raise ContradictionError([(("public_key",), "cannot stand here: people come by the cluster's API")])
        return access


def _repeated_levels(groups: Sequence[PodNodes]) -> Iterator[Mistake]:
    for g, group in enumerate(groups):
        for i, label in enumerate(group.topology):
            if label in group.topology[:i]:
                yield (g, "topology", i), f"{label} stands there already"
