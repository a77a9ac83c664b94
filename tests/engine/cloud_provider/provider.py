"""The engine's provider protocol, served from a cloud in a file.

It stands in for a bridged Terraform provider, so it does what the bridge does (pulumi-terraform-bridge, pkg/tfbridge):
names that were made up are listed in `__defaults` and kept while they are; a read without properties is an import,
which lists none (pulumi-terraform-bridge#487: such a resource is then replaced under a new name); a difference is one
between what the cloud has and what the program wants.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Mapping
from concurrent import futures
from pathlib import Path
from typing import Any, Protocol

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc

from cloud_provider import arguments
from cloud_provider.faults import Faults
from cloud_provider.kinds import Kind, RefusedError
from cloud_provider.store import Row, Store
from cloud_provider.wire import Value, abort, checked, difference, half_made, ignoring, parsed, plain, wire

DEFAULTS = "__defaults"  # the bridge's list of arguments that it chose itself
THREADS = 16


class Cloud(Protocol):
    """What a provider asks of its cloud, seen through one region.

    All but `find` and `imported` may raise RefusedError.
    """

    region: str

    def create(
        self, type_: str, urn: str, inputs: Mapping[str, Any], tags: Mapping[str, str], *, starved: bool = False
    ) -> Row: ...

    def find(self, type_: str, id_: str) -> Row | None: ...

    def imported(self, type_: str, name: str) -> Row | None: ...

    def update(self, type_: str, id_: str, inputs: Mapping[str, Any], tags: Mapping[str, str]) -> Row: ...

    def delete(self, type_: str, id_: str) -> None: ...


class Provider(provider_pb2_grpc.ResourceProviderServicer):
    """One provider of a program, configured for one region. A cloud's own provider says what stands first here.

    package: of the SDK's types. kinds: what the cloud knows, described in `described`. waited_for: types whose creation
    waits for machines. small: types whose made-up names have small letters only.
    """

    package: str
    kinds: Mapping[str, Kind]
    described: str
    waited_for: frozenset[str] = frozenset()
    small: frozenset[str] = frozenset()

    def __init__(self, store: Store, faults: Faults) -> None:
        self.store, self.faults = store, faults
        self.cloud = self.connect("")

    def connect(self, region: str) -> Cloud:
        """The cloud as seen through a region."""
        raise NotImplementedError

    def answer(self, token: str, asked: Value) -> Value | None:
        """The answer to a data query, None where the stand-in has none."""
        raise NotImplementedError

    def Handshake(self, request: Any, context: grpc.ServicerContext) -> Any:
        return provider_pb2.ProviderHandshakeResponse()

    def GetPluginInfo(self, request: Any, context: grpc.ServicerContext) -> Any:
        return plugin_pb2.PluginInfo(version=arguments.sdk(f"{self.package}:")[1])

    def CheckConfig(self, request: Any, context: grpc.ServicerContext) -> Any:
        news = plain(request.news)
        own = {key: parsed(value) for key, value in news.items() if key != "version" and not key.startswith("__")}
        return checked(news, arguments.problems(arguments.PROVIDERS + self.package, own))

    def DiffConfig(self, request: Any, context: grpc.ServicerContext) -> Any:
        old, new = plain(request.old_inputs), plain(request.news)
        changed = sorted(key for key in {*old, *new} - {"version"} if old.get(key) != new.get(key))
        return difference(changed, [key for key in changed if key == "region"])

    def Configure(self, request: Any, context: grpc.ServicerContext) -> Any:
        given = {key: parsed(value) for key, value in plain(request.args).items()}
        self.configure(given)
        return provider_pb2.ConfigureResponse(supportsPreview=True)

    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:
        type_, old, new = _type(request.urn), plain(request.olds), plain(request.news)
        self.store.called("check", type_)
        if type_ not in self.kinds:
            return checked(new, [self._stranger(type_)])
        wrong = arguments.problems(type_, new) or self.refused(type_, new)
        named = self.kinds[type_].named
        if named and new.get(named) is None and not wrong:
            kept = old.get(named) if named in old.get(DEFAULTS, []) else None
            new[named] = kept or self._name(type_, request)
            new[DEFAULTS] = [named]
        return checked(self.completed(type_, new), wrong)

    def Diff(self, request: Any, context: grpc.ServicerContext) -> Any:
        type_ = _type(request.urn)
        self.store.called("diff", type_, request.id)
        have, had, new = plain(request.olds), plain(request.old_inputs), plain(request.news)
        new = ignoring(self.compared(type_, have, new), have, request.ignoreChanges)
        names = ({*new} | {*had}) - {DEFAULTS}
        was = {name: (have if name in new else had).get(name) for name in names}
        changed = sorted(name for name in names if new.get(name) != was[name])
        fixed = {path.partition(".")[0] for path in self.kinds[type_].fixed if _at(was, path) != _at(new, path)}
        return difference(changed, [name for name in changed if name in fixed])

    def Create(self, request: Any, context: grpc.ServicerContext) -> Any:
        type_, inputs = _type(request.urn), plain(request.properties)
        if request.preview:
            self.store.called("preview", type_)
            return provider_pb2.CreateResponse(properties=wire(self.expected(type_, inputs)))
        try:
            self.faults.before("create", type_)
            starved = self.faults.starved(type_)
            row = self.cloud.create(type_, request.urn, _own(inputs), self.tags(type_, inputs), starved=starved)
        except RefusedError as refused:
            self.store.called("create", type_, fault=refused.code)
            abort(context, f"creating {_told(type_)} ({_logical(request.urn)}): {refused}")
        self.store.called("create", type_, row.id)
        self.faults.lose(type_, row.id)
        if self.faults.late(type_) or (starved and type_ in self.waited_for):
            half_made(context, row.id, inputs, self.properties(row, inputs))
        return provider_pb2.CreateResponse(id=row.id, properties=wire(self.properties(row, inputs)))

    def Read(self, request: Any, context: grpc.ServicerContext) -> Any:
        type_, inputs = _type(request.urn), plain(request.inputs)
        importing = not request.properties.fields
        self.store.called("import" if importing else "read", type_, request.id)
        row = self.cloud.imported(type_, request.id) if importing else self.cloud.find(type_, request.id)
        if row is None:
            return provider_pb2.ReadResponse()
        known, untold = plain(request.properties), self.kinds[type_].untold
        properties = {key: value for key, value in self.properties(row, inputs).items() if key not in untold}
        properties |= {key: known[key] for key in untold if key in known}
        if importing:
            inputs = {key: properties[key] for key in row.inputs if key in properties} | {DEFAULTS: []}
        else:
            inputs = _renewed(inputs, properties)
        return provider_pb2.ReadResponse(id=row.id, inputs=wire(inputs), properties=wire(properties))

    def Update(self, request: Any, context: grpc.ServicerContext) -> Any:
        type_, inputs = _type(request.urn), plain(request.news)
        if request.preview:
            self.store.called("preview", type_, request.id)
            return provider_pb2.UpdateResponse(properties=wire({**plain(request.olds), **self.expected(type_, inputs)}))
        self.store.called("update", type_, request.id)
        try:
            self.faults.before("update", type_)
            row = self.cloud.update(type_, request.id, _own(inputs), self.tags(type_, inputs))
        except RefusedError as refused:
            abort(context, f"updating {_told(type_)} ({request.id}): {refused}")
        return provider_pb2.UpdateResponse(properties=wire(self.properties(row, inputs)))

    def Delete(self, request: Any, context: grpc.ServicerContext) -> Any:
        type_ = _type(request.urn)
        self.store.called("delete", type_, request.id)
        try:
            self.faults.before("delete", type_)
            self.cloud.delete(type_, request.id)
        except RefusedError as refused:
            abort(context, f"deleting {_told(type_)} ({request.id}): {refused}")
        return empty_pb2.Empty()

    def Invoke(self, request: Any, context: grpc.ServicerContext) -> Any:
        asked = plain(request.args)
        self.store.called("invoke", request.tok, str(asked.get("name", "")))
        answer = self.answer(request.tok, asked)
        if answer is None:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, f"this stand-in has no answer for {request.tok}")
            raise AssertionError("abort raises")
        told = provider_pb2.InvokeResponse()
        getattr(told, "return").update({**asked, **answer})
        return told

    def Cancel(self, request: Any, context: grpc.ServicerContext) -> Any:
        return empty_pb2.Empty()

    def configure(self, given: Mapping[str, Any]) -> None:
        """Takes the provider's settings."""
        self.cloud = self.connect(given["region"])

    def tags(self, type_: str, inputs: Mapping[str, Any]) -> dict[str, str]:
        """All tags that a resource will have."""
        return dict(inputs.get("tags") or {}) if arguments.taggable(type_) else {}

    def refused(self, type_: str, inputs: Value) -> list[str]:
        """What the provider refuses beside what the SDK's types say, a line each."""
        return []

    def completed(self, type_: str, inputs: Value) -> Value:
        """The arguments with the provider's own."""
        return inputs

    def compared(self, type_: str, have: Value, inputs: Value) -> Value:
        """The arguments as they are compared with what there is."""
        return inputs

    def expected(self, type_: str, inputs: Value) -> Value:
        """What a preview knows of a resource."""
        return inputs

    def properties(self, row: Row, inputs: Mapping[str, Any]) -> Value:
        """The whole resource."""
        return {**row.properties, **({"tags": row.tags} if row.tags else {})}

    def _stranger(self, type_: str) -> str:
        """Why a type is not served: the SDK does not have it, or this stand-in does not know it."""
        try:
            arguments.shape(type_)
        except arguments.UnknownTypeError as unknown:
            return str(unknown)
        return f"the stand-in cloud does not know {type_}: describe it in {self.described}"

    def _name(self, type_: str, request: Any) -> str:
        """As the bridge makes one up: the logical name and seven random hexadecimal digits."""
        name = f"{_logical(request.urn)}-{request.randomSeed.hex()[:7]}"
        return name.lower() if type_ in self.small else name


def _own(inputs: Mapping[str, Any]) -> Value:
    """What concerns the cloud."""
    return {key: value for key, value in inputs.items() if key != DEFAULTS}


def _renewed(inputs: Value, properties: Value) -> Value:
    """Old inputs with the cloud's present values; a name that has changed was not made up any more."""
    now = {key: _known(inputs[key], properties.get(key)) for key in inputs if key != DEFAULTS}
    still = [name for name in inputs.get(DEFAULTS, []) if now.get(name) == inputs.get(name)]
    kept = {key: value for key, value in now.items() if value is not None}
    return {**kept, DEFAULTS: still} if DEFAULTS in inputs else kept


def _at(values: Any, path: str) -> Any:
    for name in path.split("."):
        values = (values or {}).get(name)
    return values


def _known(stated: Any, now: Any) -> Any:
    """A value as it is now, of a block only what was stated: a refresh adds no arguments."""
    if not (isinstance(stated, dict) and isinstance(now, dict)):
        return now
    return {key: _known(value, now[key]) for key, value in stated.items() if key in now}


def _type(urn: str) -> str:
    return urn.split("::")[2].rpartition("$")[2]


def _logical(urn: str) -> str:
    return urn.rpartition("::")[2]


def _told(type_: str) -> str:
    return type_.rpartition(":")[2]


def serve(provider: type[Provider], prefix: str) -> None:
    """Serves until the engine ends it, or is itself gone. prefix: of the environment's `_FILE` and `_FAULTS`."""
    store = Store(Path(os.environ[f"{prefix}_FILE"]))
    server = grpc.server(futures.ThreadPoolExecutor(THREADS))
    faults = Faults(store, os.environ.get(f"{prefix}_FAULTS", ""))
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(provider(store, faults), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()  # closed when the engine dies
    print(port, flush=True)
    ended.wait()
    server.stop(grace=1).wait()
