"""The stack file of `cloud: aws`: nodes in one region of Amazon's standard partition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, Strict, ValidationInfo, field_validator, model_validator

from infra.catalog import FabricNeed
from infra.spec.aws_eks import Eks, strangers_to_eks
from infra.spec.aws_market import HEX, Market, OnDemandMarket
from infra.spec.cluster import Access, Budget, Cluster, Section, at_least_one, unique_names
from infra.spec.nearest import hint
from infra.spec.problem import Contradiction, Mistake
from infra.spec.shown import quoted
from infra.spec.types import AbsolutePath, Cidr, Count, MigProfile, Name, PublicKey, like

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
Email = Annotated[str, AfterValidator(like(r"[^@\s]+@[^@\s]+\.[^@\s]+", "e-mail address"))]
Flag = Annotated[bool, Strict()]
Percent = Annotated[float, Strict(), Field(gt=0, le=100)]


class AwsNetwork(Section):
    """The VPC. internet: how nodes reach what is not AWS: through NAT, or not at all."""

    cidr: Cidr
    internet: Literal["nat", "none"] = "nat"


class AwsAccess(Access):
    """How people come in: SSH from named networks with their key, Session Manager, or both."""

    ssh_from: tuple[Cidr, ...] = ()
    ssm: Flag = False
    public_key: PublicKey | None = None

    @model_validator(mode="after")
    def _key_for_ssh(self) -> AwsAccess:
        if self.ssh_from and self.public_key is None:
            raise Contradiction([(("public_key",), "is missing: nobody can use `ssh_from` without a key")])
        return self


class AwsBudget(Budget):
    """notify: who is told when a month comes near its limit."""

    notify: tuple[Email, ...] = ()

    @model_validator(mode="after")
    def _something_to_tell(self) -> AwsBudget:
        if self.notify and self.monthly is None:
            raise Contradiction([(("monthly",), "is missing: `notify` tells of a month's limit")])
        return self


class Root(Section):
    """The volume that a node boots from; speeds left out are those that cost nothing."""

    size_gib: Annotated[int, Strict()]
    iops: Annotated[int, Strict()] | None = None
    mib_per_second: Annotated[int, Strict()] | None = None


class AwsNodes(Section):
    """Equal instances: `count` of them, or between `min` and `max` by the load of their GPUs.

    The group named `head` is the login machine. fabric: EFA between the nodes; preferred where the type has it.
    mig: the slices that every GPU is cut into, such as [3g.20gb, 3g.20gb].
    """

    name: Name
    type: InstanceTypeName
    count: Annotated[Count, Field(le=1000)] | None = None
    min: Annotated[int, Strict(), Field(ge=0)] | None = None
    max: Annotated[Count, Field(le=1000)] | None = None
    gpu_load: Percent | None = None
    market: Market = OnDemandMarket(kind="on-demand")
    fabric: FabricNeed = "preferred"
    layout: Literal["efficient", "bandwidth"] = "efficient"
    placement: Literal["auto", "apart"] = "auto"
    zone: Zone | None = None
    root: Root | None = None
    mig: Annotated[tuple[MigProfile, ...], AfterValidator(at_least_one)] | None = None

    @model_validator(mode="after")
    def _one_way_to_count(self) -> AwsNodes:
        if mistakes := list(self._count_mistakes()):
            raise Contradiction(mistakes)
        return self

    def _count_mistakes(self) -> Iterator[Mistake]:
        elastic = {"min": self.min, "max": self.max, "gpu_load": self.gpu_load}
        given = [key for key, value in elastic.items() if value is not None]
        if self.count is not None:
            yield from (((key,), "cannot stand beside `count`: a group is fixed or elastic") for key in given)
        elif not given:
            yield ("count",), "is missing; or give `min` and `max` for a group that follows its load"
        else:
            absent = [key for key in ("min", "max") if key not in given]
            yield from (((key,), "is missing; an elastic group needs `min` and `max`") for key in absent)
        if self.min is not None and self.max is not None and self.min > self.max:
            yield ("min",), f"{self.min} is more than `max`, which is {self.max}"


class Bucket(Section):
    """An S3 bucket, mounted on every node.

    client: the program that mounts it; s3fs and rclone can rename and overwrite, and are slower for it. removable:
    `down` deletes it with all that it holds.
    """

    name: Name
    kind: Literal["bucket"]
    mount: AbsolutePath
    client: Literal["mountpoint", "s3fs", "rclone"] = "mountpoint"
    removable: Flag = False


class Lustre(Section):
    """A file system of FSx for Lustre. bucket: the name of the bucket whose objects it shows as files."""

    name: Name
    kind: Literal["lustre"]
    mount: AbsolutePath
    size_gib: Annotated[int, Strict()]
    mib_per_second_per_tib: Annotated[int, Strict()] = 250
    efa: Flag = False
    bucket: Name | None = None


Storage = Annotated[Bucket | Lustre, Field(discriminator="kind")]


class Images(Section):
    """The machine images that were looked up, by architecture; `up` asks for those that are not recorded."""

    x86_64: ImageId | None = None
    arm64: ImageId | None = None


class AwsSpec(Cluster):
    """A cluster in one region, in one zone (`zone`) or several (`zones`)."""

    cloud: Literal["aws"]
    region: Region
    zone: Zone | None = None
    zones: Annotated[tuple[Zone, ...], AfterValidator(at_least_one)] | None = None
    network: AwsNetwork
    # Narrower than the cluster's own: safe, since a section is frozen, which the type checker cannot see.
    access: AwsAccess = AwsAccess()  # pyright: ignore[reportIncompatibleVariableOverride]
    images: Images = Images()
    nodes: Annotated[tuple[AwsNodes, ...], AfterValidator(at_least_one), AfterValidator(unique_names)]
    storage: Annotated[tuple[Storage, ...], AfterValidator(unique_names)] = ()
    eks: Eks | None = None
    budget: AwsBudget | None = None  # pyright: ignore[reportIncompatibleVariableOverride]

    @property
    def all_zones(self) -> tuple[str, ...]:
        return self.zones or ((self.zone,) if self.zone else ())

    @field_validator("zone", "zones", mode="after")
    @classmethod
    def _zones_in_the_region(cls, value: Any, info: ValidationInfo) -> Any:
        region, several = info.data.get("region"), isinstance(value, tuple)
        zones = value if several else (value,)
        if mistakes := [((i,) * several, text) for i, text in _zone_mistakes(zones, region)]:
            raise Contradiction(mistakes)
        return value

    @field_validator("nodes", mode="after")
    @classmethod
    def _groups_in_the_zones(cls, groups: tuple[AwsNodes, ...], info: ValidationInfo) -> tuple[AwsNodes, ...]:
        if not {"zone", "zones"} <= info.data.keys():
            return groups
        zones = info.data["zones"] or (info.data["zone"],)
        if mistakes := [
            (
                (i, "zone"),
                f"{group.zone} is none of the cluster's zones: {', '.join(filter(None, zones)) or 'none given'}",
            )
            for i, group in enumerate(groups)
            if group.zone is not None and group.zone not in zones
        ]:
            raise Contradiction(mistakes)
        return groups

    @field_validator("storage", mode="after")
    @classmethod
    def _linked_buckets_exist(cls, items: tuple[Storage, ...]) -> tuple[Storage, ...]:
        buckets = [item.name for item in items if isinstance(item, Bucket)]
        if mistakes := [
            ((i, "bucket"), f"there is no bucket '{item.bucket}' in `storage`{hint(item.bucket, buckets)}")
            for i, item in enumerate(items)
            if isinstance(item, Lustre) and item.bucket is not None and item.bucket not in buckets
        ]:
            raise Contradiction(mistakes)
        return items

    @model_validator(mode="after")
    def _zone_or_zones(self) -> AwsSpec:
        if self.zone is not None and self.zones is not None:
            raise Contradiction([(("zones",), "cannot stand beside `zone`: name one or several")])
        if not self.all_zones:
            message = f"is missing, such as {self.region}a: a zone that AWS picks may be another one tomorrow"
            raise Contradiction([(("zone",), message)])
        return self

    @model_validator(mode="after")
    def _fits_eks(self) -> AwsSpec:
        if self.eks is not None and (mistakes := list(strangers_to_eks(self))):
            raise Contradiction(mistakes)
        return self


def _zone_mistakes(zones: Sequence[str | None], region: str | None) -> Iterator[tuple[int, str]]:
    for i, zone in enumerate(zones):
        if zone is not None and region is not None and not zone.startswith(region):
            yield i, f"{zone} is not in the region {region}"
        if zone in zones[:i]:
            yield i, f"{zone} stands there already"
