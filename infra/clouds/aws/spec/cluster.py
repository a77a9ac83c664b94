"""The stack file of `cloud: aws`: nodes in one region of Amazon's standard partition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, Strict, field_validator, model_validator

from infra.catalog import FabricNeed
from infra.clouds.aws.spec.eks import Eks
from infra.clouds.aws.spec.market import HEX, Market, OnDemandMarket
from infra.spec import cloud as rented
from infra.spec.cloud import Counted, Flag, SshAccess, ToldBudget, Zoned
from infra.spec.cluster import Section, at_least_one, unique_names
from infra.spec.errors import ContradictionError, Mistake, quoted
from infra.spec.fields import MigProfile, MountPath, Name, like
from infra.suggest import hint

# The Region enum of pulumi-aws 7.51.1 without other partitions (China, GovCloud, European Sovereign, isolated ones):
# their ARNs, endpoints and images differ.
REGIONS = (
    "af-south-1", "ap-east-1", "ap-east-2", "ap-northeast-1", "ap-northeast-2", "ap-northeast-3", "ap-south-1",
    "ap-south-2", "ap-southeast-1", "ap-southeast-2", "ap-southeast-3", "ap-southeast-4", "ap-southeast-5",
    "ap-southeast-6", "ap-southeast-7", "ca-central-1", "ca-west-1", "eu-central-1", "eu-central-2", "eu-north-1",
    "eu-south-1", "eu-south-2", "eu-west-1", "eu-west-2", "eu-west-3", "il-central-1", "me-central-1", "me-south-1",
    "mx-central-1", "sa-east-1", "us-east-1", "us-east-2", "us-west-1", "us-west-2",
)  # fmt: skip


def _region(text: str) -> str:
    if text not in REGIONS:
        raise ValueError(f"{quoted(text)} is no region of AWS's standard partition{hint(text, REGIONS)}")
    return text


def _instance_type(text: str) -> str:
    from infra.catalog import load  # a stack of another cloud needs no tables of this one

    types = [kind for kind in load().types if kind.cloud == "aws"]
    known = [kind.name for kind in types]
    if text in known:
        return text
    with_it = [kind.name for kind in types if kind.gpu and text and kind.gpu.lower().startswith(text.lower())]
    if with_it:
        raise ValueError(f"{quoted(text)} is a GPU; types with it: {', '.join(with_it)}")
    raise ValueError(f"unknown instance type {quoted(text)}{hint(text, known)}")


ZONE = r"[a-z]{2}(-[a-z]+)+-\d(-[a-z]{3}-\d)?[a-z]"

Region = Annotated[str, AfterValidator(_region)]
Zone = Annotated[str, AfterValidator(like(ZONE, "availability zone such as us-east-1a"))]
InstanceTypeName = Annotated[str, AfterValidator(_instance_type)]
ImageId = Annotated[str, AfterValidator(like(f"ami-{HEX}", "machine image such as ami-0123456789abcdef0"))]


class AwsAccess(SshAccess):
    """How people come in: SSH from named networks with their key, Session Manager, or both."""

    ssm: Flag = False


class Root(Section):
    """The volume that a node boots from; speeds left out are those that cost nothing."""

    size_gib: Annotated[int, Strict()]
    iops: Annotated[int, Strict()] | None = None
    mib_per_second: Annotated[int, Strict()] | None = None


class AwsNodes(Counted):
    """Equal instances: `count` of them, or between `min` and `max` by the load of their GPUs.

    The group named `head` is the login machine. fabric: EFA between the nodes; preferred where the type has it.
    mig: the slices that every GPU is cut into, such as [3g.20gb, 3g.20gb].
    """

    type: InstanceTypeName
    market: Market = OnDemandMarket(kind="on-demand")
    fabric: FabricNeed = "preferred"
    layout: Literal["efficient", "bandwidth"] = "efficient"
    placement: Literal["auto", "apart"] = "auto"
    zone: Zone | None = None
    root: Root | None = None
    mig: Annotated[tuple[MigProfile, ...], AfterValidator(at_least_one)] | None = None


class Bucket(rented.Bucket):
    """A bucket of S3. client: the program that mounts it; s3fs and rclone can rename and overwrite, and are slower."""

    client: Literal["mountpoint", "s3fs", "rclone"] = "mountpoint"


class Lustre(Section):
    """A file system of FSx for Lustre. bucket: the name of the bucket whose objects it shows as files."""

    name: Name
    kind: Literal["lustre"]
    mount: MountPath
    size_gib: Annotated[int, Strict()]
    mib_per_second_per_tib: Annotated[int, Strict()] = 250
    efa: Flag = False
    bucket: Name | None = None


Storage = Annotated[Bucket | Lustre, Field(discriminator="kind")]


class Images(Section):
    """The machine images that were looked up, by architecture; `up` asks for those that are not recorded."""

    x86_64: ImageId | None = None
    arm64: ImageId | None = None


class AwsSpec(Zoned):
    """A cluster in one region, in one zone (`zone`) or several (`zones`)."""

    cloud: Literal["aws"]
    # Narrower than what clusters have in common: safe, since a section is frozen, which the type checker cannot see.
    region: Region  # pyright: ignore[reportIncompatibleVariableOverride]
    zone: Zone | None = None  # pyright: ignore[reportIncompatibleVariableOverride]
    zones: Annotated[tuple[Zone, ...], AfterValidator(at_least_one)] | None = None  # pyright: ignore[reportIncompatibleVariableOverride]
    access: AwsAccess = AwsAccess()  # pyright: ignore[reportIncompatibleVariableOverride]
    images: Images = Images()
    nodes: Annotated[tuple[AwsNodes, ...], AfterValidator(at_least_one), AfterValidator(unique_names)]
    storage: Annotated[tuple[Storage, ...], AfterValidator(unique_names)] = ()
    eks: Eks | None = None
    budget: ToldBudget | None = None  # pyright: ignore[reportIncompatibleVariableOverride]

    @field_validator("storage", mode="after")
    @classmethod
    def _linked_buckets_exist(cls, items: tuple[Storage, ...]) -> tuple[Storage, ...]:
        buckets = [item.name for item in items if isinstance(item, Bucket)]
        if mistakes := [
            ((i, "bucket"), f"there is no bucket '{item.bucket}' in `storage`{hint(item.bucket, buckets)}")
            for i, item in enumerate(items)
            if isinstance(item, Lustre) and item.bucket is not None and item.bucket not in buckets
        ]:
            raise ContradictionError(mistakes)
        return items

    @model_validator(mode="after")
    def _fits_eks(self) -> AwsSpec:
        if self.eks is not None and (mistakes := list(_conflicts_with_eks(self))):
            raise ContradictionError(mistakes)
        return self


def _conflicts_with_eks(spec: AwsSpec) -> Iterator[Mistake]:
    """What a cluster of EKS has no use for, each with what does it instead."""
    if spec.access.ssh_from:
        yield ("access", "ssh_from"), "cannot stand beside `eks`: use its `api_from`, or `ssm: true` for the nodes"
    if spec.access.public_key is not None:
        yield ("access", "public_key"), "cannot stand beside `eks`: its nodes know no login key; use `ssm: true`"
    if spec.images.x86_64 or spec.images.arm64:
        yield ("images",), "cannot stand beside `eks`, whose version chooses the image"
    for i, item in enumerate(spec.storage):
        if item.kind == "bucket" and "client" in item.model_fields_set:
            yield ("storage", i, "client"), "cannot stand beside `eks`, where no node mounts a bucket; leave it out"
    for i, group in enumerate(spec.nodes):
        if group.name == "head":
            yield ("nodes", i, "name"), "cannot be 'head' beside `eks`: people come by its API; choose another name"
        if group.mig is not None:
            yield ("nodes", i, "mig"), "cannot stand beside `eks`, whose image brings the driver; leave it out"
        if group.count is None:
            yield ("nodes", i, "min"), "cannot stand beside `eks`, where nothing follows the load yet; give `count`"
