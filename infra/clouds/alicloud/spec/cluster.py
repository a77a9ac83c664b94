"""The stack file of `cloud: alicloud`: nodes in one region of Alibaba Cloud's China site, prices in CNY."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, Strict, model_validator

from infra.catalog import FabricNeed
from infra.clouds.alicloud.spec.market import Market, OnDemandMarket
from infra.clouds.kubernetes.spec.cluster import OwnTenancy
from infra.spec.cloud import Bucket, Copy, Counted, SshAccess, ToldBudget, Zoned
from infra.spec.cluster import Section, at_least_one, unique_names
from infra.spec.errors import ContradictionError, Mistake, quoted
from infra.spec.fields import like, version_text
from infra.suggest import hint

# Those that sell GPUs or have a price in the tables (cloudpilot-ai/karpenter-provider-alibabacloud, 2024-12-31).
REGIONS = (
    "cn-beijing", "cn-chengdu", "cn-guangzhou", "cn-hangzhou", "cn-heyuan", "cn-hongkong", "cn-huhehaote", "cn-nanjing",
    "cn-qingdao", "cn-shanghai", "cn-shenzhen", "cn-wulanchabu", "cn-zhangjiakou", "ap-northeast-1", "ap-northeast-2",
    "ap-southeast-1", "ap-southeast-3", "ap-southeast-5", "ap-southeast-6", "ap-southeast-7", "eu-central-1",
    "eu-west-1", "me-east-1", "us-east-1", "us-west-1",
)  # fmt: skip
LINGJUN = "efg"  # what the names of Lingjun's machines begin with (efg1.nvga8n)


def _region(text: str) -> str:
    if text not in REGIONS:
        raise ValueError(f"{quoted(text)} is no region of Alibaba Cloud with GPUs{hint(text, REGIONS)}")
    return text


def _instance_type(text: str) -> str:
    from infra.catalog import load  # a stack of another cloud needs no tables of this one

    if text.startswith(LINGJUN):
        raise ValueError(f"{quoted(text)} is a machine of Lingjun, sold by contract alone: not deployable yet")
    types = [kind for kind in load().types if kind.cloud == "alicloud"]
    known = [kind.name for kind in types]
    if text in known:
        return text
    if f"ecs.{text}" in known:
        raise ValueError(f"unknown instance type {quoted(text)}; did you mean 'ecs.{text}'?")
    with_it = [kind.name for kind in types if kind.gpu and text and kind.gpu.lower().startswith(text.lower())]
    if with_it:
        raise ValueError(f"{quoted(text)} is a GPU; types with it: {', '.join(with_it)}")
    raise ValueError(f"unknown instance type {quoted(text)}{hint(text, known)}")


# `cn-beijing-l` in China, `us-east-1a` elsewhere.
ZONE = r"cn-[a-z]+-[a-z]|[a-z]{2}-[a-z]+-\d[a-z]"

Region = Annotated[str, AfterValidator(_region)]
Zone = Annotated[str, AfterValidator(like(ZONE, "zone such as cn-beijing-l"))]
InstanceTypeName = Annotated[str, AfterValidator(_instance_type)]
ImageId = Annotated[
    str, AfterValidator(like(r"m-[0-9a-z]{20}|[\w.]+\.vhd", "image such as ubuntu_24_04_x64_20G_alibase_20260916.vhd"))
]
AckVersion = Annotated[
    str,
    BeforeValidator(version_text),
    AfterValidator(like(r"1\.\d{2}(\.\d+-aliyun\.\d+)?", 'version such as "1.35" or "1.35.2-aliyun.1"')),
]
LEAST_GIB = {"PL2": 461, "PL3": 1261}  # ECS API, RunInstances, SystemDisk.Size


class Root(Section):
    """The disk that a node boots from, an ESSD. level: its performance level, PL0 to PL3."""

    size_gib: Annotated[int, Strict(), Field(ge=20, le=2048)]
    level: Literal["PL0", "PL1", "PL2", "PL3"] = "PL1"

    @model_validator(mode="after")
    def _is_large_enough(self) -> Root:
        if self.size_gib < (least := LEAST_GIB.get(self.level, 0)):
            raise ContradictionError([(("size_gib",), f"a disk of {self.level} has at least {least} GiB")])
        return self


class AlicloudNodes(Counted):
    """Equal instances: `count` of them, or between `min` and `max` by the load of their GPUs.

    The group named `head` is the login machine. others: types to take as well, on spot, where the first is sold out.
    fabric: eRDMA between the nodes, or the RoCE of a Super Computing Cluster; preferred where the type has it.
    queue_pairs: of each eRDMA interface, for types with two: what DescribeInstanceTypes says as QueuePairNumber.
    """

    type: InstanceTypeName
    others: tuple[InstanceTypeName, ...] = ()
    market: Market = OnDemandMarket(kind="on-demand")
    fabric: FabricNeed = "preferred"
    queue_pairs: Annotated[int, Strict(), Field(ge=1)] | None = None
    placement: Literal["auto", "apart"] = "auto"
    zone: Zone | None = None
    root: Root | None = None

    @model_validator(mode="after")
    def _others_are_spot(self) -> AlicloudNodes:
        if self.others and (self.market.kind != "spot" or self.count is None):
            raise ContradictionError(
                [(("others",), "needs `market: {kind: spot}` and a `count`: only spot mixes types")]
            )
        repeated = [i for i, name in enumerate(self.others) if name in (self.type, *self.others[:i])]
        if repeated:
            raise ContradictionError([(("others", i), f"{self.others[i]} stands there already") for i in repeated])
        return self


class Ack(Section):
    """Node pools of a managed cluster of ACK, in place of scaling groups. Its API is reached from the VPC alone.

    The provider can only open it to the whole internet, not to named networks, so that is not offered. version: a minor
    one is the newest release of it at each `up`; a whole one stays. tenant: its objects and charts are installed into
    the cluster; None without one.
    """

    version: AckVersion
    tenant: OwnTenancy | None = None


class Images(Section):
    """The machine image that was looked up; `up` asks for the newest one of Ubuntu 24.04 where none is recorded."""

    x86_64: ImageId | None = None


class AlicloudSpec(Zoned):
    """A cluster in one region of Alibaba Cloud.

    ossfs_sha256: of the package of ossfs, with which nodes mount buckets; its vendor publishes none. Where it is not
    given no node mounts them.
    """

    cloud: Literal["alicloud"]
    # Narrower than what clusters have in common: safe, since a section is frozen, which the type checker cannot see.
    region: Region  # pyright: ignore[reportIncompatibleVariableOverride]
    zone: Zone | None = None  # pyright: ignore[reportIncompatibleVariableOverride]
    zones: Annotated[tuple[Zone, ...], AfterValidator(at_least_one)] | None = None  # pyright: ignore[reportIncompatibleVariableOverride]
    access: SshAccess = SshAccess()  # pyright: ignore[reportIncompatibleVariableOverride]
    images: Images = Images()
    nodes: Annotated[tuple[AlicloudNodes, ...], AfterValidator(at_least_one), AfterValidator(unique_names)]
    storage: Annotated[tuple[Bucket, ...], AfterValidator(unique_names)] = ()
    ossfs_sha256: Annotated[str, AfterValidator(like(r"[0-9a-f]{64}", "sha256 of a file"))] | None = None
    copies: tuple[Copy, ...] = ()
    ack: Ack | None = None
    budget: ToldBudget | None = None  # pyright: ignore[reportIncompatibleVariableOverride]

    @property
    def example_zone(self) -> str:
        return f"{self.region}-a" if self.region.startswith("cn-") else f"{self.region}a"

    @model_validator(mode="after")
    def _copies_have_a_place(self) -> AlicloudSpec:
        own = [bucket.name for bucket in self.storage]
        lost = [(i, copy.to) for i, copy in enumerate(self.copies) if copy.to not in own]
        if lost:
            mistakes = [(("copies", i, "to"), f"{quoted(to)} is none of `storage`{hint(to, own)}") for i, to in lost]
            raise ContradictionError(mistakes)
        return self

    @model_validator(mode="after")
    def _fits_ack(self) -> AlicloudSpec:
        if self.ack is not None and (mistakes := list(_conflicts_with_ack(self))):
            raise ContradictionError(mistakes)
        return self


def _conflicts_with_ack(spec: AlicloudSpec) -> Iterator[Mistake]:
    """What a cluster of ACK has no use for, each with what does it instead."""
    if spec.access.ssh_from:
        yield ("access", "ssh_from"), "cannot stand beside `ack`: people come by its API, from the VPC"
    if spec.ossfs_sha256 is not None:
        yield ("ossfs_sha256",), "cannot stand beside `ack`, whose nodes mount nothing"
    if spec.images.x86_64:
        yield ("images",), "cannot stand beside `ack`, whose version chooses the image"
    for i, group in enumerate(spec.nodes):
        for key, message in _conflicts_with_pools(group):
            yield ("nodes", i, *key), message


def _conflicts_with_pools(group: AlicloudNodes) -> Iterator[Mistake]:
    """What a node pool of ACK does not take, by the group's keys."""
    market = group.market
    if group.name == "head":
        yield ("name",), "cannot be 'head' beside `ack`: people come by its API; choose another name"
    if group.others:
        yield ("others",), "cannot stand beside `ack`, whose pools are of one type here"
    if group.count is None:
        yield ("min",), "cannot stand beside `ack`, where nothing follows the load yet; give `count`"
    if market.kind in ("reservation", "assurance"):
        yield ("market",), "cannot stand beside `ack`, whose pools are on demand or on spot; choose one"
    if market.kind == "spot" and "protected_hour" in market.model_fields_set:
        yield ("market", "protected_hour"), "cannot stand beside `ack`, whose pools have no such hour; leave it out"
    if group.placement == "apart":
        yield ("placement",), "cannot be 'apart' beside `ack`, whose pools name no set; leave it out"
