"""What each resource type takes, by the types of the provider's SDK itself.

The SDK is the only list there is; importing its modules takes seconds, so that what was read of a type is kept in the
user's cache, by the SDK's version.
"""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import importlib.util
import inspect
import json
import os
import typing
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from pulumi.runtime.rpc import UNKNOWN

PROVIDERS = "pulumi:providers:"

Shape = dict[
    str, Any
]  # {"any"} | {"scalar"} | {"list": Shape} | {"map": Shape} | {"object": {name: Shape}, "required"}


class UnknownTypeError(LookupError):
    """The provider has no resource of this type."""


def problems(type_: str, inputs: Mapping[str, Any]) -> list[str]:
    """What is wrong with a resource's arguments, a line each. Raises UnknownTypeError."""
    return list(_problems(shape(type_), inputs, ""))


@cache
def shape(type_: str) -> Shape:
    """The arguments of a resource type. Raises UnknownTypeError."""
    kept = _kept(type_)
    if not kept.is_file():
        kept.parent.mkdir(parents=True, exist_ok=True)
        fresh = kept.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps(_read(type_)))
        fresh.replace(kept)
    return json.loads(kept.read_text())


def sdk(type_: str) -> tuple[str, str]:
    """The SDK's package of a type, such as `pulumi_aws`, and its version."""
    package = "pulumi_" + type_.removeprefix(PROVIDERS).partition(":")[0]
    return package, importlib.metadata.version(package)


def taggable(type_: str) -> bool:
    """Whether it takes tags as a map, which the provider's default tags then join."""
    return "map" in shape(type_)["object"].get("tags", {})


def _kept(type_: str) -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    package, version = sdk(type_)
    name = type_.replace("/", ".").replace(":", "-") + ".json"
    return Path(base, "gpufleet", package.replace("_", "-"), version, name)


def _problems(wanted: Shape, value: Any, path: str) -> Iterator[str]:
    if value == UNKNOWN or value is None or "any" in wanted:
        return
    kinds = {"list": (list, "a list"), "map": (dict, "a map"), "object": (dict, "a block")}
    python, name = next((kinds[kind] for kind in kinds if kind in wanted), ((str, int, float, bool), "a single value"))
    if not isinstance(value, python):
        yield f"{path}: must be {name}, not {value!r}"
    elif "list" in wanted:
        for number, item in enumerate(value):
            yield from _problems(wanted["list"], item, f"{path}[{number}]")
    elif "map" in wanted:
        for key, item in value.items():
            yield from _problems(wanted["map"], item, f"{path}.{key}")
    elif "object" in wanted:
        yield from _block(wanted, value, path)


def _block(wanted: Shape, value: Mapping[str, Any], path: str) -> Iterator[str]:
    dot, known = f"{path}." if path else "", wanted["object"]
    for key, item in value.items():
        if key in known:
            yield from _problems(known[key], item, dot + key)
        else:
            near = get_close_matches(key, known, 1)
            yield f"{dot}{key}: unknown argument" + (f"; did you mean {near[0]!r}?" if near else "")
    for key in wanted["required"]:
        if value.get(key) is None:
            yield f"{dot}{key}: missing required argument"


def _read(type_: str) -> Shape:
    """The shape of a type's arguments: the first name in the module of the class that the SDK registers for it."""
    package, name = (sdk(type_)[0], "Provider") if type_.startswith(PROVIDERS) else _registered(type_)
    resource = getattr(importlib.import_module(package), name)
    module = importlib.import_module(resource.__module__)
    return _class(getattr(module, module.__all__[0]))


def _registered(type_: str) -> tuple[str, str]:
    """Module and class: the SDK's own table of types is a JSON text in a call of its first file."""
    package, version = sdk(type_)
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    for node in ast.walk(ast.parse(Path(spec.origin).read_text())):
        if isinstance(node, ast.keyword) and node.arg == "resource_modules" and isinstance(node.value, ast.Constant):
            for entry in json.loads(str(node.value.value)):
                if type_ in entry["classes"]:
                    return entry["fqn"], entry["classes"][type_]
    raise UnknownTypeError(f"{package} {version} has no resource type {type_}")


def _class(args: type) -> Shape:
    """An input class of the SDK: an argument without a default is required."""
    from pulumi import _types  # the SDK's own reading of its classes; pinned, as in infra.graph.program

    wire = _types.input_type_py_to_pulumi_names(args)
    parameters = list(inspect.signature(args.__init__).parameters.values())[1:]
    required = [wire[one.name] for one in parameters if one.default is inspect.Parameter.empty]
    fields = {name: _shape(kind) for name, kind in _types.input_type_types(args).items()}
    return {"object": fields, "required": required}


def _shape(kind: Any) -> Shape:
    import pulumi
    from pulumi import _types

    kind = _types.unwrap_type(kind)
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"map": _shape(parts[1])}
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return {"list": _shape(parts[0])}
    if isinstance(kind, type) and _types.is_input_type(kind):
        return _class(kind)
    if kind in {str, int, float, bool}:
        return {"scalar": True}
    if kind in {pulumi.Asset, pulumi.Archive} or origin is not None or not isinstance(kind, type):
        return {"any": True}
    return {"scalar": True}  # an enumeration
