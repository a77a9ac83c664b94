"""What the cloud knows of a resource type, as data: ids, ARNs, names, what is made up, what cannot be changed.

Sources: ids, import ids, computed attributes and what forces a replacement, the provider's page of each resource
(registry.terraform.io, hashicorp/aws); ARNs, the Service Authorization Reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

ACCOUNT = "123456789012"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One resource type. Texts are templates over the inputs, `id`, `region`, `account`, `hex`, `uuid` and `crc`.

    id: as the provider gives it. imports: by what it can be imported, where that is not the id. arn: as the tagging API
    names it, empty where it cannot be tagged. outputs: what the cloud adds; an input of the name wins.
    named: the argument for which the provider makes a name up. unique: arguments that no two may share, and AWS's word
    when they do. fixed: arguments whose change makes a new resource.
    part_of: the argument that names what it goes with when that is deleted. free: may be deleted while others use it.
    ghost: the state in which AWS goes on showing it for a while after its deletion.
    untold: arguments that no API tells, so that an import does not bring them. region: where it lives, if not here.
    listed: whether the tagging API names it (Resource Groups User Guide, "Supported resources").
    """

    id: str
    imports: tuple[str, ...] = ()
    arn: str = ""
    outputs: Mapping[str, Any] = field(default_factory=dict)
    named: str = ""
    unique: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fixed: tuple[str, ...] = ()
    part_of: str = ""
    free: bool = False
    ghost: str = ""
    untold: tuple[str, ...] = ()
    region: str = ""
    listed: bool = True


def filled(template: Any, values: Mapping[str, Any]) -> Any:
    """A template with its words put in, however deep they stand."""
    if isinstance(template, str):
        return template.format_map(values)
    if isinstance(template, Mapping):
        return {key: filled(item, values) for key, item in template.items()}
    return [filled(item, values) for item in template] if isinstance(template, list) else template
