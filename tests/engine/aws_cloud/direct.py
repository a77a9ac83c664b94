"""The provider without an engine: its protocol, called in this process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from cloud_provider.faults import Faults
from cloud_provider.store import Row, Store
from cloud_provider.wire import Value, plain, wire
from pulumi.runtime.proto import provider_pb2

from aws_cloud.provider import Aws

SEED = bytes.fromhex("0123456789abcdef")


class AbortedError(Exception):
    """What the provider told the engine instead of an answer."""


class _Context:
    def abort(self, code: Any, message: str) -> NoReturn:
        raise AbortedError(message)

    def set_trailing_metadata(self, metadata: Any) -> None:
        """What goes with an abort; the engine's tests look at it."""


@dataclass(frozen=True)
class Direct:
    """One provider on a cloud of its own."""

    provider: Aws
    store: Store
    context: Any = field(default_factory=_Context)

    @classmethod
    def on(
        cls, file: Path, *, region: str = "us-east-1", tags: Mapping[str, str] | None = None, faults: str = ""
    ) -> Direct:
        store = Store(file)
        provider = Aws(store, Faults(store, faults))
        made = cls(provider, store)
        args = {"region": region, **({"defaultTags": {"tags": dict(tags)}} if tags else {})}
        provider.Configure(provider_pb2.ConfigureRequest(args=wire(args)), made.context)
        return made

    def problems(self, type_: str, /, **inputs: Any) -> list[str]:
        """What the provider says against a resource's arguments."""
        return [failure.reason for failure in self._check(type_, "it", {}, inputs, SEED).failures]

    def checked(self, type_: str, name: str, old: Value, new: Value, seed: bytes = SEED) -> Value:
        """The arguments as the engine will state them."""
        return plain(self._check(type_, name, old, new, seed).inputs)

    def make(self, type_: str, logical: str, /, **inputs: Any) -> Row:
        """Checks and makes a resource. Raises AbortedError."""
        checked = self.checked(type_, logical, {}, inputs)
        request = provider_pb2.CreateRequest(urn=_urn(type_, logical), properties=wire(checked))
        made = self.provider.Create(request, self.context)
        (row,) = self.store.rows("type = ? and id = ?", type_, made.id)
        return row

    def read(
        self, type_: str, id_: str, inputs: Value | None = None, properties: Value | None = None
    ) -> tuple[str, Value, Value]:
        """Id, inputs and properties; an empty id for what is not there."""
        request = provider_pb2.ReadRequest(
            urn=_urn(type_, "it"), id=id_, inputs=wire(inputs or {}), properties=wire(properties or {})
        )
        answer = self.provider.Read(request, self.context)
        return answer.id, plain(answer.inputs), plain(answer.properties)

    def difference(self, row: Row, /, **new: Any) -> tuple[list[str], list[str]]:
        """The arguments that a change concerns, and those that make a new resource."""
        request = provider_pb2.DiffRequest(
            urn=_urn(row.type, "it"),
            id=row.id,
            olds=wire(row.properties),
            old_inputs=wire(row.inputs),
            news=wire({**row.inputs, **new}),
        )
        answer = self.provider.Diff(request, self.context)
        return list(answer.diffs), list(answer.replaces)

    def change(self, row: Row, /, **new: Any) -> None:
        """Updates a resource in place. Raises AbortedError."""
        request = provider_pb2.UpdateRequest(
            urn=_urn(row.type, "it"), id=row.id, olds=wire(row.properties), news=wire({**row.inputs, **new})
        )
        self.provider.Update(request, self.context)

    def delete(self, row: Row) -> None:
        """Raises AbortedError."""
        self.provider.Delete(provider_pb2.DeleteRequest(urn=_urn(row.type, "it"), id=row.id), self.context)

    def _check(self, type_: str, name: str, old: Value, new: Value, seed: bytes) -> Any:
        request = provider_pb2.CheckRequest(urn=_urn(type_, name), olds=wire(old), news=wire(new), randomSeed=seed)
        return self.provider.Check(request, self.context)


def _urn(type_: str, name: str) -> str:
    return f"urn:pulumi:tried::gpufleet::{type_}::{name}"
