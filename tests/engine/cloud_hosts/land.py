"""What differs from cloud to cloud when its instances become real machines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from cloud_provider.store import Row, Store

from cloud_hosts.metadata import Metadata


@dataclass(frozen=True, kw_only=True)
class Instance:
    """What a machine is born with. keys: whom its image lets in. script: its user data. role: that it may take on."""

    name: str
    address: str
    keys: tuple[str, ...]
    script: bytes
    role: str


class Land(Protocol):
    """A cloud, as its machines see it. user: the login name of its images."""

    user: str

    @property
    def packages(self) -> Mapping[str, Mapping[str, str]]:
        """Stand-ins that user data installs, beside those of every cloud: by name, their files."""
        ...

    def router(self, cidr: str) -> str:
        """The address that no machine of the VPC gets."""
        ...

    def running(self, store: Store) -> dict[str, Row]:
        """The instances that run, by id."""
        ...

    def instance(self, store: Store, row: Row) -> Instance: ...

    def metadata(self, born: Instance) -> Metadata:
        """What an instance is told of itself."""
        ...

    def public_address(self, store: Store, row: Row) -> str:
        """Empty without one, and as long as it has none yet."""
        ...

    def firewall(self, store: Store, row: Row) -> str:
        """Its security groups as a ruleset of nftables."""
        ...

    def objects(self, router: str) -> AbstractContextManager[tuple[Mapping[str, str], Callable[[Store], None]]]:
        """Serves the cloud's object storage: the environment in which user data finds it, and what brings there all
        that a cloud has of buckets and objects by now."""
        ...
