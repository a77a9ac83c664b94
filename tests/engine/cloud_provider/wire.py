"""The engine's values and answers as Python has them: structures, differences, failures, half made resources."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn, cast

import grpc
from google.protobuf import json_format, struct_pb2
from pulumi.runtime.proto import provider_pb2, status_pb2

Value = dict[str, Any]


def parsed(value: Any) -> Any:
    """A provider's setting: all but texts travel as JSON."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except json.JSONDecodeError:
        return value


def plain(struct: struct_pb2.Struct) -> Value:
    """The engine's values; numbers are whole where they can be."""
    return cast(Value, _whole(json_format.MessageToDict(struct)))


def _whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def wire(values: Mapping[str, Any]) -> struct_pb2.Struct:
    """Values as the engine takes them."""
    struct = struct_pb2.Struct()
    struct.update(values)
    return struct


def difference(changed: list[str], replaced: list[str]) -> Any:
    """The answer to Diff: the arguments that changed, and which of them need a new resource."""
    kinds = provider_pb2.PropertyDiff
    return provider_pb2.DiffResponse(
        changes=provider_pb2.DiffResponse.DIFF_SOME if changed else provider_pb2.DiffResponse.DIFF_NONE,
        diffs=changed,
        replaces=replaced,
        detailedDiff={
            name: kinds(kind=kinds.UPDATE_REPLACE if name in replaced else kinds.UPDATE, inputDiff=True)
            for name in changed
        },
        hasDetailedDiff=True,
    )


def ignoring(wanted: Mapping[str, Any], have: Mapping[str, Any], paths: Iterable[str]) -> Value:
    """What is wanted, but at these paths what there is, whether the program states it or not."""
    for path in paths:
        name, _, rest = path.partition(".")
        if name in have:
            there = ignoring(wanted.get(name, {}), have[name], [rest]) if rest else have[name]
            wanted = {**wanted, name: there}
    return dict(wanted)


def checked(inputs: Value, wrong: list[str]) -> Any:
    """The answer to Check: the arguments as they will be stated, and what is wrong, a line each."""
    failures = [provider_pb2.CheckFailure(reason=line) for line in wrong]
    return provider_pb2.CheckResponse(inputs=wire(inputs), failures=failures)


def abort(context: grpc.ServicerContext, message: str) -> NoReturn:
    """Ends a call with an error that the engine shows as it is."""
    context.abort(grpc.StatusCode.UNKNOWN, message)
    raise AssertionError("abort raises")


def half_made(context: grpc.ServicerContext, id_: str, inputs: Value, properties: Value) -> NoReturn:
    """The engine keeps such a resource, with the reason why it is not whole, and updates it the next time."""
    reason = f"waiting for {id_}: timeout while waiting for state to become 'available' (last state: 'pending')"
    detail = provider_pb2.ErrorResourceInitFailed(
        id=id_, properties=wire(properties), inputs=wire(inputs), reasons=[reason]
    )
    status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=reason)
    status.details.add().Pack(detail)
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    abort(context, reason)
