"""`pulumi-resource-aws`: the engine's provider protocol, served from a cloud in a file.

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
from typing import Any

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc
from pulumi.runtime.rpc import UNKNOWN

from aws_cloud import arguments, images
from aws_cloud.cloud import KINDS, Cloud
from aws_cloud.faults import Faults
from aws_cloud.kinds_services import BUCKET, NODE_GROUP, SCALING_GROUP
from aws_cloud.refusals import Refused
from aws_cloud.store import Row, Store
from aws_cloud.wire import Value, abort, checked, difference, half_made, parsed, plain, wire

DEFAULTS = "__defaults"  # the bridge's list of arguments that it chose itself
THREADS = 16
WAITED_FOR = {SCALING_GROUP, NODE_GROUP}  # the provider waits for their machines; it does not for those of a fleet
PARAMETER = "aws:ssm/getParameter:getParameter"


class Provider(provider_pb2_grpc.ResourceProviderServicer):
    """One provider of a program, configured for one region."""

    def __init__(self, store: Store, faults: Faults) -> None:
        self.store, self.faults = store, faults
        self.cloud, self.default_tags = Cloud(store, ""), {}

    def Handshake(self, request: Any, context: grpc.ServicerContext) -> Any:
        return provider_pb2.ProviderHandshakeResponse()

    def GetPluginInfo(self, request: Any, context: grpc.ServicerContext) -> Any:
        return plugin_pb2.PluginInfo(version=arguments.VERSION)

    def CheckConfig(self, request: Any, context: grpc.ServicerContext) -> Any:
        news = plain(request.news)
        own = {key: parsed(value) for key, value in news.items() if key != "version" and not key.startswith("__")}
        return checked(news, arguments.problems(arguments.PROVIDER, own))

    def DiffConfig(self, request: Any, context: grpc.ServicerContext) -> Any:
        old, new = plain(request.old_inputs), plain(request.news)
        changed = sorted(key for key in {*old, *new} - {"version"} if old.get(key) != new.get(key))
        return difference(changed, [key for key in changed if key == "region"])

    def Configure(self, request: Any, context: grpc.ServicerContext) -> Any:
        given = {key: parsed(value) for key, value in plain(request.args).items()}
        self.default_tags = (given.get("defaultTags") or {}).get("tags") or {}
        self.cloud = Cloud(self.store, given["region"])
        return provider_pb2.ConfigureResponse(supportsPreview=True)

    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:
        type_, old, new = _type(request.urn), plain(request.olds), plain(request.news)
        self.store.called("check", type_)
        if type_ not in KINDS:
            return checked(new, [_stranger(type_)])
        wrong = arguments.problems(type_, new)
        named = KINDS[type_].named
        if named and new.get(named) is None and not wrong:
            kept = old.get(named) if named in old.get(DEFAULTS, []) else None
            new[named] = kept or _name(type_, request)
            new[DEFAULTS] = [named]
        return checked(new, wrong)

    def Diff(self, request: Any, context: grpc.ServicerContext) -> Any:
        type_ = _type(request.urn)
        self.store.called("diff", type_, request.id)
        have, had, new = plain(request.olds), plain(request.old_inputs), plain(request.news)
        names = ({*new} | {*had}) - {DEFAULTS}
        changed = sorted(name for name in names if new.get(name) != (have if name in new else had).get(name))
        return difference(changed, [name for name in changed if name in KINDS[type_].fixed])

    def Create(self, request: Any, context: grpc.ServicerContext) -> Any:
        type_, inputs = _type(request.urn), plain(request.properties)
        if request.preview:
            self.store.called("preview", type_)
            return provider_pb2.CreateResponse(properties=wire(self._expected(type_, inputs)))
        try:
            self.faults.before("create", type_)
            starved = self.faults.starved(type_)
            row = self.cloud.create(type_, request.urn, _own(inputs), self._tags(type_, inputs), starved=starved)
        except Refused as refused:
            self.store.called("create", type_, fault=refused.code)
            abort(context, f"creating {_told(type_)} ({_logical(request.urn)}): {refused}")
        self.store.called("create", type_, row.id)
        self.faults.lose(type_, row.id)
        if self.faults.late(type_) or (starved and type_ in WAITED_FOR):
            half_made(context, row.id, inputs, self._properties(row, inputs))
        return provider_pb2.CreateResponse(id=row.id, properties=wire(self._properties(row, inputs)))

    def Read(self, request: Any, context: grpc.ServicerContext) -> Any:
        type_, inputs = _type(request.urn), plain(request.inputs)
        importing = not request.properties.fields
        self.store.called("import" if importing else "read", type_, request.id)
        row = self.cloud.imported(type_, request.id) if importing else self.cloud.find(type_, request.id)
        if row is None:
            return provider_pb2.ReadResponse()
        known, untold = plain(request.properties), KINDS[type_].untold
        properties = {key: value for key, value in self._properties(row, inputs).items() if key not in untold}
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
            return provider_pb2.UpdateResponse(
                properties=wire({**plain(request.olds), **self._expected(type_, inputs)})
            )
        self.store.called("update", type_, request.id)
        try:
            self.faults.before("update", type_)
            row = self.cloud.update(type_, request.id, _own(inputs), self._tags(type_, inputs))
        except Refused as refused:
            abort(context, f"updating {_told(type_)} ({request.id}): {refused}")
        return provider_pb2.UpdateResponse(properties=wire(self._properties(row, inputs)))

    def Delete(self, request: Any, context: grpc.ServicerContext) -> Any:
        type_ = _type(request.urn)
        self.store.called("delete", type_, request.id)
        try:
            self.faults.before("delete", type_)
            self.cloud.delete(type_, request.id)
        except Refused as refused:
            abort(context, f"deleting {_told(type_)} ({request.id}): {refused}")
        return empty_pb2.Empty()

    def Invoke(self, request: Any, context: grpc.ServicerContext) -> Any:
        asked = plain(request.args)
        self.store.called("invoke", request.tok, str(asked.get("name", "")))
        if request.tok != PARAMETER:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, f"this stand-in has no answer for {request.tok}")
        told = provider_pb2.InvokeResponse()
        getattr(told, "return").update({**asked, **images.parameter(asked["name"], self.cloud.region)})
        return told

    def Cancel(self, request: Any, context: grpc.ServicerContext) -> Any:
        return empty_pb2.Empty()

    def _tags(self, type_: str, inputs: Mapping[str, Any]) -> dict[str, str]:
        """All tags that a resource will have; a scaling group's own form reaches nothing but the group."""
        own = inputs.get("tags") or {}
        if arguments.taggable(type_):
            return {**self.default_tags, **own}
        return {tag["key"]: tag["value"] for tag in own}

    def _expected(self, type_: str, inputs: Value) -> Value:
        """What a preview knows of a resource: its inputs and its tags."""
        if not arguments.taggable(type_):
            return inputs
        known = inputs.get("tags") != UNKNOWN
        return {**inputs, "tagsAll": self._tags(type_, inputs) if known else UNKNOWN}

    def _properties(self, row: Row, inputs: Mapping[str, Any]) -> Value:
        """The whole resource. Of its tags, those are its own that are no defaults, or that its inputs name too."""
        if not arguments.taggable(row.type):
            return row.properties
        stated = inputs.get("tags") or {}
        own = {key: tag for key, tag in row.tags.items() if key in stated or self.default_tags.get(key) != tag}
        return {**row.properties, "tags": own, "tagsAll": row.tags}


def _own(inputs: Mapping[str, Any]) -> Value:
    """What concerns the cloud."""
    return {key: value for key, value in inputs.items() if key != DEFAULTS}


def _renewed(inputs: Value, properties: Value) -> Value:
    """Old inputs with the cloud's present values; a name that has changed was not made up any more."""
    now = {key: properties.get(key) for key in inputs if key != DEFAULTS}
    still = [name for name in inputs.get(DEFAULTS, []) if now.get(name) == inputs.get(name)]
    kept = {key: value for key, value in now.items() if value is not None}
    return {**kept, DEFAULTS: still} if DEFAULTS in inputs else kept


def _stranger(type_: str) -> str:
    """Why a type is not served: the SDK does not have it, or this stand-in does not know it."""
    try:
        arguments.shape(type_)
    except arguments.UnknownTypeError as unknown:
        return str(unknown)
    return f"the stand-in cloud does not know {type_}: describe it in tests/engine/aws_cloud/kinds_services.py"


def _name(type_: str, request: Any) -> str:
    """As the bridge makes one up: the logical name and seven random hexadecimal digits; buckets in small letters."""
    name = f"{_logical(request.urn)}-{request.randomSeed.hex()[:7]}"
    return name.lower() if type_ == BUCKET else name


def _type(urn: str) -> str:
    return urn.split("::")[2].rpartition("$")[2]


def _logical(urn: str) -> str:
    return urn.rpartition("::")[2]


def _told(type_: str) -> str:
    return type_.rpartition(":")[2]


def main() -> None:
    """Serves until the engine ends it, or is itself gone."""
    store = Store(Path(os.environ["AWS_CLOUD_FILE"]))
    server = grpc.server(futures.ThreadPoolExecutor(THREADS))
    faults = Faults(store, os.environ.get("AWS_CLOUD_FAULTS", ""))
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(Provider(store, faults), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()  # closed when the engine dies
    print(port, flush=True)
    ended.wait()
    server.stop(grace=1).wait()


if __name__ == "__main__":
    main()
