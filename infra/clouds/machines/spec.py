"""The stack file of `cloud: machines`: hosts that are there already, joined by one's own fabric."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, Strict, ValidationInfo, field_validator, model_validator

from infra.spec.cluster import Access, Cluster, Section, at_least_one, repeated_names, unique_names
from infra.spec.errors import ContradictionError, Mistake, quoted
from infra.spec.fields import AbsolutePath, Address, Cidr, Count, Flag, GpuName, KeyFile, MountPath, Name, Port, like
from infra.spec.public_key import checked_public_key

COMMAND_LENGTH = 1000  # characters of a command: short enough to be reviewed
SECRETS = ("password", "passwd", "-P", "pass:")  # a BMC's password on a command line is seen by `ps`


def _partition_key(text: str) -> str:
    like(r"0x[0-9a-fA-F]{4}", 'partition key such as "0x8001"')(text)
    return text.lower()


def _unique(devices: tuple[str, ...]) -> tuple[str, ...]:
    if mistakes := [((i,), f"{device} is listed twice") for i, device in enumerate(devices) if device in devices[:i]]:
        raise ContradictionError(mistakes)
    return devices


def _no_secret(arguments: tuple[str, ...]) -> tuple[str, ...]:
    for argument in arguments:
        if argument in SECRETS or argument.lower().removeprefix("--").partition("=")[0] in SECRETS:
            raise ValueError(f"{quoted(argument)} would show a password in the process list; use a file or a variable")
    return arguments


def _reviewable(arguments: tuple[str, ...]) -> tuple[str, ...]:
    if mistakes := [
        ((i,), f"{quoted(argument)} has control characters, which a review does not show")
        for i, argument in enumerate(arguments)
        if not argument.isprintable()
    ]:
        raise ContradictionError(mistakes)
    if (length := sum(map(len, arguments))) > COMMAND_LENGTH:
        raise ValueError(f"has {length} characters, of which a review shows {COMMAND_LENGTH}: put it into a script")
    return arguments


HostKey = Annotated[str, AfterValidator(checked_public_key)]
Hca = Annotated[str, AfterValidator(like(r"[a-z][a-z0-9_]{0,30}", "RDMA device such as mlx5_0"))]
Hcas = Annotated[tuple[Hca, ...], AfterValidator(at_least_one), AfterValidator(_unique)]
Device = Annotated[str, AfterValidator(like(r"/dev(/\w[\w.:+-]*)+", "device such as /dev/disk/by-id/nvme-eui.01"))]
Devices = Annotated[
    tuple[Device, ...],
    AfterValidator(at_least_one),
    AfterValidator(_unique),
]
Label = Annotated[Name, AfterValidator(like(r".{1,12}", "label of XFS, which has up to 12 characters"))]  # mkfs.xfs(8)
Gbits = Annotated[int, Strict(), Field(ge=1, le=1600)]
PartitionKey = Annotated[str, AfterValidator(_partition_key)]
Command = Annotated[
    tuple[str, ...], AfterValidator(at_least_one), AfterValidator(_no_secret), AfterValidator(_reviewable)
]


class Partition(Section):
    """key: the P_Key, with its membership bit 0x8000. index: where it stands in every port's table of keys."""

    key: PartitionKey
    index: Annotated[int, Strict(), Field(ge=0, le=127)]


class InfiniBand(Section):
    """hcas: the devices in the order of their rails, each leading to a leaf switch of its own. gbits: of one port."""

    kind: Literal["infiniband"]
    hcas: Hcas
    gbits: Gbits
    partition: Partition | None = None
    service_level: Annotated[int, Strict(), Field(ge=0, le=15)] | None = None


class Roce(Section):
    """RDMA over Ethernet. gid_index: of the RoCE v2 address in every port's table; traffic_class: the lossless one."""

    kind: Literal["roce"]
    hcas: Hcas
    gbits: Gbits
    gid_index: Annotated[int, Strict(), Field(ge=0, le=255)]
    traffic_class: Annotated[int, Strict(), Field(ge=0, le=255)]


class Host(Section):
    """One machine. host_key: of its SSH server. rack: what shares leaf switches. bmc: its management controller.

    prefix: a folder of its own in front of the system paths, where the login is no root; then no GPU is set up.
    """

    name: Name
    address: Address
    port: Port = 22
    host_key: HostKey
    rack: Name | None = None
    bmc: Address | None = None
    prefix: AbsolutePath | None = None


class HostDisks(Section):
    """Disks of each host as one file system, `mount`; several are striped. name: also the file system's label.

    encrypted: by LUKS, with a key that the host makes for itself.
    """

    name: Label
    mount: MountPath
    devices: Devices
    encrypted: Flag = False


class MachineNodes(Section):
    """Equal hosts. The group named `head`, of one host without GPUs, runs the rendezvous store."""

    name: Name
    gpu: GpuName | None = None
    gpus: Annotated[Count, Field(le=16)] | None = None
    fabric: Annotated[InfiniBand | Roce, Field(discriminator="kind")] | None = None
    disks: Annotated[tuple[HostDisks, ...], AfterValidator(unique_names)] = ()
    hosts: Annotated[tuple[Host, ...], AfterValidator(at_least_one)]

    @model_validator(mode="after")
    def _disks_differ(self) -> MachineNodes:
        owners: dict[str, str] = {}
        mistakes = [
            (("disks", d, "devices", i), f"{device} is one of {owner} already")
            for d, disks in enumerate(self.disks)
            for i, device in enumerate(disks.devices)
            if (owner := owners.setdefault(device, disks.name)) != disks.name
        ]
        if mistakes:
            raise ContradictionError(mistakes)
        return self

    @model_validator(mode="after")
    def _gpus_are_told_whole(self) -> MachineNodes:
        if (self.gpu is None) != (self.gpus is None):
            lacking, there = ("gpu", "gpus") if self.gpu is None else ("gpus", "gpu")
            raise ContradictionError([((lacking,), f"is missing beside `{there}`")])
        return self


class Shared(Section):
    """A folder that every host has mounted already, at the same path."""

    name: Name
    kind: Literal["folder"]
    mount: MountPath


class MachinesAccess(Access):
    """user: the login on every host, root or one that sudo asks for no password. key_file: its private key, here.

    control: this computer's address as the hosts reach it; needed where no head runs the rendezvous store. ssh_from:
    the networks that people log in from; with any, each host filters packets, and the cluster's hosts speak freely.
    """

    user: Annotated[str, AfterValidator(like(r"[a-z_][a-z0-9_-]{0,31}", "login name such as ops"))]
    key_file: KeyFile
    control: Address | None = None
    ssh_from: tuple[Cidr, ...] = ()


class Power(Section):
    """Commands of this computer, as lists of arguments, that act on a host's BMC: {bmc} and {host} are replaced.

    wake: run by `up` for hosts that do not answer. sleep: run by `down`, for all.
    """

    wake: Command | None = None
    sleep: Command | None = None


class MachinesSpec(Cluster):
    """Existing hosts. python: an interpreter with the locked packages that every host has already,
    as on a shared file system; without it each host gets an environment of its own."""

    cloud: Literal["machines"]
    access: MachinesAccess  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]: see AwsSpec
    nodes: Annotated[tuple[MachineNodes, ...], AfterValidator(at_least_one)]
    storage: Annotated[tuple[Shared, ...], AfterValidator(unique_names)] = ()
    python: AbsolutePath | None = None
    power: Power | None = None

    @field_validator("nodes", mode="after")
    @classmethod
    def _hosts_differ(cls, groups: tuple[MachineNodes, ...], info: ValidationInfo) -> tuple[MachineNodes, ...]:
        if mistakes := [*repeated_names(groups, "nodes"), *_repeated_hosts(groups)]:
            raise ContradictionError(mistakes)
        return groups

    @field_validator("access", mode="after")
    @classmethod
    def _hosts_have_their_logins(cls, access: MachinesAccess) -> MachinesAccess:
        if access.public_key is not None:
            raise ContradictionError([(("public_key",), "is not allowed here: the hosts have their logins already")])
        return access

    @model_validator(mode="after")
    def _power_reaches_every_host(self) -> MachinesSpec:
        missing = [
            (("nodes", g, "hosts", h, "bmc"), "is missing: `power` works on it")
            for g, group in enumerate(self.nodes)
            for h, host in enumerate(group.hosts)
            if self.power is not None and host.bmc is None
        ]
        if missing:
            raise ContradictionError(missing)
        return self


def _repeated_hosts(groups: Sequence[MachineNodes]) -> Iterator[Mistake]:
    """Hosts whose name, network address or BMC is that of an earlier one in any group."""
    owners: dict[object, str] = {}
    for g, group in enumerate(groups):
        for h, host in enumerate(group.hosts):
            keys = {"name": host.name, "address": (host.address, host.port), "bmc": host.bmc and ("bmc", host.bmc)}
            for key, value in keys.items():
                if value in owners:
                    yield (g, "hosts", h, key), f"{getattr(host, key)} is used by {owners[value]} already"
                elif value is not None:
                    owners[value] = f"nodes[{g}].hosts[{h}]"
