"""What a cloud knows of a resource type, as data, and its way to say no."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cloud_provider.store import Store


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One resource type. Texts are templates over the inputs, `id`, `region`, `account`, `hex` and what a cloud adds.

    id: as the provider gives it. imports: by what it can be imported, where that is not the id. arn: as the tagging API
    names it, empty where it cannot be tagged. outputs: what the cloud adds; an input of the name wins.
    named: the argument for which the provider makes a name up. unique: arguments that no two may share, and AWS's word
    when they do. fixed: arguments whose change makes a new resource, such as `a` or `a.b`.
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


class RefusedError(Exception):
    """The answer of a cloud instead of the deed: its error code and its message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"api error {code}: {message}")
        self.code, self.message = code, message


def taken(store: Store, type_: str, kind: Kind, inputs: Mapping[str, Any], region: str) -> None:
    """Raises RefusedError when another resource has what no two may share."""
    for code, names in kind.unique.items():
        wanted = [inputs.get(name) for name in names]
        for row in store.rows("type = ? and region = ?", type_, region):
            if row.state == "" and any(wanted) and wanted == [row.inputs.get(name) for name in names]:
                told = ", ".join(
                    f"{name} {value!r}" for name, value in zip(names, wanted, strict=True) if value is not None
                )
                raise RefusedError(code, f"{told} is already in use by {row.id}")


def leaves(value: Any) -> Iterator[str]:
    """Every text in a value, however deep it stands."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
