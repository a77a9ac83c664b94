"""`pulumi-resource-kubernetes`: the engine's provider protocol in front of a real API server, or of a shelf."""

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
from cloud_provider.wire import Value, abort, checked, difference, plain, wire
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc
from pulumi.runtime.rpc import UNKNOWN

from kubernetes_cluster.api import Api, RefusedError
from kubernetes_cluster.shelf import Shelf

VERSION = "4.34.2"
SHELF = "KUBERNETES_SHELF"  # a file that holds the objects, where there is no cluster
RELEASE = "kubernetes:helm.sh/v3:Release"
FIXED = ("apiVersion", "kind", "metadata")
UNMADE = (404,)  # a preview's namespace or definition may be one that this deployment is to make


class Provider(provider_pb2_grpc.ResourceProviderServicer):
    """One provider of a program, for one cluster."""

    api: Api | Shelf

    def Handshake(self, request: Any, context: grpc.ServicerContext) -> Any:
        return provider_pb2.ProviderHandshakeResponse()

    def GetPluginInfo(self, request: Any, context: grpc.ServicerContext) -> Any:
        return plugin_pb2.PluginInfo(version=VERSION)

    def CheckConfig(self, request: Any, context: grpc.ServicerContext) -> Any:
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, context: grpc.ServicerContext) -> Any:
        return difference([], [])

    def Configure(self, request: Any, context: grpc.ServicerContext) -> Any:
        given = plain(request.args)["kubeconfig"]
        if shelf := os.environ.get(SHELF):
            self.api = Shelf(Path(shelf))
        else:
            self.api = Api.of(given["value"] if isinstance(given, dict) else given)  # in the envelope of a secret
        return provider_pb2.ConfigureResponse(supportsPreview=True)

    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:
        return checked(plain(request.news), [])

    def Diff(self, request: Any, context: grpc.ServicerContext) -> Any:
        had, new = plain(request.old_inputs), plain(request.news)
        changed = sorted(key for key in {*had, *new} if had.get(key) != new.get(key))
        return difference(changed, [key for key in changed if key in FIXED])

    def Create(self, request: Any, context: grpc.ServicerContext) -> Any:
        inputs = plain(request.properties)
        made = self._sent(request, inputs, context)
        return provider_pb2.CreateResponse(id=_id(made), properties=wire(inputs))

    def Update(self, request: Any, context: grpc.ServicerContext) -> Any:
        inputs = plain(request.news)
        self._sent(request, inputs, context)
        return provider_pb2.UpdateResponse(properties=wire(inputs))

    def Read(self, request: Any, context: grpc.ServicerContext) -> Any:
        had = plain(request.inputs)
        body = _body(request.urn, had)
        try:
            found = self.api.find(*_address(body))
        except RefusedError as refused:
            abort(context, str(refused))
        if found is None:
            return provider_pb2.ReadResponse()
        now = had if _type(request.urn) == RELEASE else _seen(had, found)
        return provider_pb2.ReadResponse(id=request.id, inputs=wire(now), properties=wire(now))

    def Delete(self, request: Any, context: grpc.ServicerContext) -> Any:
        try:
            self.api.delete(*_address(_body(request.urn, plain(request.properties))))
        except RefusedError as refused:
            abort(context, f"{_logical(request.urn)}: {refused}")
        return empty_pb2.Empty()

    def Cancel(self, request: Any, context: grpc.ServicerContext) -> Any:
        return empty_pb2.Empty()

    def _sent(self, request: Any, inputs: Value, context: grpc.ServicerContext) -> Value:
        body = _body(request.urn, inputs)
        if _unknown(body):
            return body
        try:
            self.api.apply(body, dry=request.preview)
        except RefusedError as refused:
            if not (request.preview and refused.status in UNMADE and "no matches for kind" not in str(refused)):
                abort(context, f"{_logical(request.urn)}: {refused}")
        return body


def _body(urn: str, inputs: Value) -> Value:
    """The object itself; of a chart the record that it was asked for."""
    if _type(urn) != RELEASE:
        return inputs
    metadata = {"name": f"chart.{inputs['name']}", "namespace": "default"}
    data = {"chart": str(inputs["chart"]), "version": str(inputs["version"])}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _seen(had: Mapping[str, Any], found: Mapping[str, Any]) -> Value:
    """Of what is there, the part that was asked for."""
    return {key: _part(value, found.get(key)) for key, value in had.items()}


def _part(had: Any, found: Any) -> Any:
    if isinstance(had, dict) and isinstance(found, dict):
        return {key: _part(value, found[key]) for key, value in had.items() if key in found or value in ({}, [])}
    if isinstance(had, list) and isinstance(found, list) and len(had) == len(found):
        return [_part(value, item) for value, item in zip(had, found, strict=True)]
    return had if found is None and had in ({}, [], False) else found


def _address(body: Value) -> tuple[str, str, str, str | None]:
    return body["apiVersion"], body["kind"], body["metadata"]["name"], body["metadata"].get("namespace")


def _id(body: Value) -> str:
    _, _, name, namespace = _address(body)
    return f"{namespace}/{name}" if namespace else name


def _unknown(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_unknown, value.values()))
    return any(map(_unknown, value)) if isinstance(value, list) else value == UNKNOWN


def _type(urn: str) -> str:
    return urn.split("::")[2].rpartition("$")[2]


def _logical(urn: str) -> str:
    return urn.rpartition("::")[2]


def main() -> None:
    """Serves until the engine ends it, or is itself gone."""
    server = grpc.server(futures.ThreadPoolExecutor(16))
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(Provider(), server)
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
