"""What a role may do, as data: statements of an IAM policy, about things that the plan knows by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Resource:
    """What a statement is about: a bucket (itself, or its objects) by name, the stack's key, the role for
    storage sessions, or anything at all.

    anything: only for actions that know no resource (Service Authorization Reference). The bucket named "" is the one
    that holds the playbook bundle. prefix: of the objects that are meant, all of them where it is empty.
    """

    kind: Literal["bucket", "objects", "key", "interfaces", "storage-role", "anything"]
    name: str = ""
    prefix: str = ""


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One statement of an IAM policy, always an Allow.

    equals: condition keys and the value that each must have (StringEquals). like: the same with patterns (StringLike).
    within_vpc: only for requests that come through the endpoints of the stack's own VPC (AWS).
    """

    sid: str
    actions: tuple[str, ...]
    resources: tuple[Resource, ...]
    equals: Mapping[str, str]
    like: Mapping[str, str] = field(default_factory=dict)
    within_vpc: bool = False
