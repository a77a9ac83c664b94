"""The stack file of `cloud: local`: nodes on this computer."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from infra.spec.cluster import Cluster, Section, at_least_one, repeated_names, unique_names
from infra.spec.errors import ContradictionError, Mistake
from infra.spec.fields import Address, Cidr, Count, MountPath, Name, Port

# Loopback addresses need no set-up and port 22 needs root; a machine has its own network and port 22.
NETWORKS = {
    "process": {"cidr": "127.0.0.0/24", "port": 2222},
    "machine": {"cidr": "10.213.0.0/24", "port": 22},
}


class LocalNetwork(Section):
    """The nodes' network and the TCP port of their SSH servers; each key has a default by isolation."""

    cidr: Cidr
    port: Port


class LocalNodes(Section):
    """Equal nodes. At most 1000: a Linux bridge has 1023 ports (BR_PORT_BITS in the kernel's bridge driver)."""

    name: Name
    count: Annotated[Count, Field(le=1000)]
    addresses: tuple[Address, ...] | None = None


class Folder(Section):
    """A folder of this computer that all nodes share."""

    name: Name
    kind: Literal["folder"]
    mount: MountPath


class LocalSpec(Cluster):
    """Nodes on this computer: SSH servers (process), or systemd-nspawn machines (machine)."""

    cloud: Literal["local"]
    isolation: Literal["process", "machine"]
    network: Annotated[LocalNetwork, Field(default_factory=dict, validate_default=True)]
    nodes: Annotated[tuple[LocalNodes, ...], AfterValidator(at_least_one)]
    storage: Annotated[tuple[Folder, ...], AfterValidator(unique_names)] = ()

    @field_validator("network", mode="before")
    @classmethod
    def _default_by_isolation(cls, value: Any, info: ValidationInfo) -> Any:
        default = NETWORKS[info.data.get("isolation", "process")]
        return {**default, **value} if isinstance(value, dict) else value

    @field_validator("nodes", mode="after")
    @classmethod
    def _groups_agree(cls, groups: tuple[LocalNodes, ...], info: ValidationInfo) -> tuple[LocalNodes, ...]:
        known = "isolation" in info.data and "network" in info.data
        addresses = _address_mistakes(groups, info.data["network"].cidr if known else None)
        if mistakes := [*repeated_names(groups, "nodes"), *addresses]:
            raise ContradictionError(mistakes)
        return groups


def _address_mistakes(groups: tuple[LocalNodes, ...], cidr: IPv4Network | None) -> Iterator[Mistake]:
    """The mistakes in the given addresses; without a network, those that do not depend on it."""
    owners: dict[IPv4Address, str] = {}
    for g, group in enumerate(groups):
        if group.addresses is None:
            continue
        if len(group.addresses) != group.count:
            have = f"{len(group.addresses)} address{'es' if len(group.addresses) != 1 else ''}"
            yield (g, "addresses"), f"has {have} for {group.count} node{'s' if group.count != 1 else ''}"
        for a, address in enumerate(group.addresses):
            if address in owners:
                yield (g, "addresses", a), f"{address} is used already by {owners[address]}"
            elif cidr and address not in cidr:
                yield (g, "addresses", a), f"{address} is outside the network {cidr}"
            elif cidr and address in (cidr.network_address, cidr.broadcast_address):
                yield (g, "addresses", a), f"{address} is the first or last of {cidr}, which no node can have"
            owners.setdefault(address, f"{group.name}-{a + 1}")
