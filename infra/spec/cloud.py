"""What the stack files of rented clouds have in common: a network, who comes in, zones, and groups that may grow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, Strict, ValidationInfo, field_validator, model_validator

from infra.spec.cluster import Access, Budget, Cluster, Section, at_least_one
from infra.spec.errors import ContradictionError, Mistake
from infra.spec.fields import STACK, Cidr, Count, Flag, MountPath, Name, PublicKey, like

EMAIL = r"\w[\w.+-]*@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+"
Email = Annotated[str, AfterValidator(like(EMAIL, "e-mail address such as ops@example.com"))]
Percent = Annotated[float, Strict(), Field(gt=0, le=100)]
Size = Annotated[Count, Field(le=1000)]


class Vpc(Section):
    """The cluster's own network. internet: how nodes reach what is not the cloud: through NAT, or not at all."""

    cidr: Cidr
    internet: Literal["nat", "none"] = "nat"


class SshAccess(Access):
    """How people come in: SSH from named networks with their key."""

    ssh_from: tuple[Cidr, ...] = ()
    public_key: PublicKey | None = None

    @model_validator(mode="after")
    def _key_for_ssh(self) -> SshAccess:
        if self.ssh_from and self.public_key is None:
            raise ContradictionError([(("public_key",), "is missing: nobody can use `ssh_from` without a key")])
        return self


class ToldBudget(Budget):
    """notify: mail addresses that are notified when a month's cost nears the limit."""

    notify: tuple[Email, ...] = ()

    @model_validator(mode="after")
    def _something_to_tell(self) -> ToldBudget:
        if self.notify and self.monthly is None:
            raise ContradictionError([(("monthly",), "is missing: `notify` tells of a month's limit")])
        return self


class Bucket(Section):
    """A bucket, mounted on every node. removable: `down` deletes it with all that it holds."""

    name: Name
    kind: Literal["bucket"]
    mount: MountPath
    removable: Flag = False


StackName = Annotated[str, AfterValidator(like(STACK, "name of a stack"))]
Prefix = Annotated[str, AfterValidator(like(r"(\w[\w.=-]*/)*\w[\w.=-]*", "path in a bucket, such as runs/gpt"))]


class Copy(Section):
    """A copy of another stack's bucket into one of this stack's.

    stack, storage: where it is. to: the name of this stack's bucket. prefix: the part that is copied, all of it where
    none is named. gib_per_month: how much is new each month, for the price.
    """

    stack: StackName
    storage: Name
    to: Name
    prefix: Prefix | None = None
    gib_per_month: Annotated[int, Strict(), Field(ge=1, le=10_000_000)]


class Counted(Section):
    """Equal machines: `count` of them, or between `min` and `max` by the load of their GPUs."""

    name: Name
    count: Size | None = None
    min: Annotated[int, Strict(), Field(ge=0)] | None = None
    max: Size | None = None
    gpu_load: Percent | None = None

    @model_validator(mode="after")
    def _one_way_to_count(self) -> Counted:
        if mistakes := list(self._count_mistakes()):
            raise ContradictionError(mistakes)
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


class Zoned(Cluster):
    """A cluster in one region, in one zone (`zone`) or several (`zones`); its groups may each name one of them."""

    region: str
    zone: str | None = None
    zones: Annotated[tuple[str, ...], AfterValidator(at_least_one)] | None = None
    network: Vpc

    @property
    def all_zones(self) -> tuple[str, ...]:
        return self.zones or ((self.zone,) if self.zone else ())

    @field_validator("zone", "zones", mode="after")
    @classmethod
    def _zones_in_the_region(cls, value: Any, info: ValidationInfo) -> Any:
        region, several = info.data.get("region"), isinstance(value, tuple)
        zones = value if several else (value,)
        if mistakes := [((i,) * several, text) for i, text in _zone_mistakes(zones, region)]:
            raise ContradictionError(mistakes)
        return value

    @field_validator("nodes", mode="after", check_fields=False)
    @classmethod
    def _groups_in_the_zones(cls, groups: tuple[Any, ...], info: ValidationInfo) -> tuple[Any, ...]:
        if not {"zone", "zones"} <= info.data.keys():
            return groups
        zones = info.data["zones"] or (info.data["zone"],)
        named = ", ".join(filter(None, zones)) or "none given"
        if mistakes := [
            ((i, "zone"), f"{group.zone} is none of the cluster's zones: {named}")
            for i, group in enumerate(groups)
            if group.zone is not None and group.zone not in zones
        ]:
            raise ContradictionError(mistakes)
        return groups

    @model_validator(mode="after")
    def _zone_or_zones(self) -> Zoned:
        if self.zone is not None and self.zones is not None:
            raise ContradictionError([(("zones",), "cannot stand beside `zone`: name one or several")])
        if not self.all_zones:
            message = f"is missing, such as {self.example_zone}: a zone that the cloud picks may be another tomorrow"
            raise ContradictionError([(("zone",), message)])
        return self

    @property
    def example_zone(self) -> str:
        return f"{self.region}a"


def _zone_mistakes(zones: Sequence[str | None], region: str | None) -> Iterator[tuple[int, str]]:
    for i, zone in enumerate(zones):
        if zone is not None and region is not None and not zone.startswith(region):
            yield i, f"{zone} is not in the region {region}"
        if zone in zones[:i]:
            yield i, f"{zone} stands there already"
