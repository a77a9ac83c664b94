"""What the rules for every cloud are about on each of them: each cloud contributes its own table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from infra import registry


@dataclass(frozen=True, kw_only=True)
class ArnForm:
    """How a cloud names its resources.

    prefix: what a name begins with. parts: how many there are between colons: the service is the fourth from the end,
    the account the second, the name the last. flat: services whose resources are names at once, and not `type/name`.
    """

    prefix: str
    parts: int
    flat: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Tables:
    """providers: types of the cloud's Pulumi providers. tagged: types of what costs money or holds data.

    with_user_data: types whose user data nodes run. secrets: patterns of the cloud's credentials, by what they are.
    arns: the forms of its resources' names.
    """

    providers: tuple[str, ...] = ()
    tagged: tuple[str, ...] = ()
    with_user_data: tuple[str, ...] = ()
    secrets: Mapping[str, str] = field(default_factory=dict)
    arns: tuple[ArnForm, ...] = ()


@cache
def of_every_cloud() -> Tables:
    """All clouds' tables as one."""
    parts = [registry.cloud(name) for name in registry.CLOUDS]
    tables: list[Tables] = [registry.part(cloud.policy_tables) for cloud in parts if cloud.policy_tables]
    return Tables(
        providers=tuple(item for table in tables for item in table.providers),
        tagged=tuple(item for table in tables for item in table.tagged),
        with_user_data=tuple(item for table in tables for item in table.with_user_data),
        secrets={what: pattern for table in tables for what, pattern in table.secrets.items()},
        arns=tuple(form for table in tables for form in table.arns),
    )
