"""The sealed list of what a checkpoint holds: step, files with size and sha256, and where each tensor's pieces are."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from training.checkpoint import tensorfile
from training.checkpoint.tensorfile import NotTensors, Written
from training.steps import folder_name

MANIFEST = "manifest.json"
VERSION = 2


class Damaged(Exception):
    """This checkpoint must not be loaded; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """What a tensor in a file is: the part of tensor `name`, whose whole shape is `shape`, that begins at `offsets` and
    is `lengths` long. dtype: as tensorfile names it."""

    name: str
    dtype: str
    shape: list[int]
    offsets: list[int]
    lengths: list[int]


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """pieces: by file, then by key in it."""

    step: int
    about: dict[str, Any]
    files: dict[str, Written]
    pieces: dict[str, dict[str, Place]]
    torch: str = torch.__version__
    version: int = VERSION

    def encoded(self) -> bytes:
        body = canonical(vars(self))
        return f'{{"body": {body}, "seal": "{seal(body)}"}}'.encode()


@dataclass(frozen=True, kw_only=True)
class Contents:
    """A verified checkpoint: its manifest, and the very bytes of its files that were hashed."""

    manifest: Manifest
    files: dict[str, bytearray]

    @property
    def step(self) -> int:
        return self.manifest.step

    @property
    def about(self) -> dict[str, Any]:
        return self.manifest.about

    def tensors(self) -> dict[str, Tensor]:
        """All tensors by name, put together from their pieces; raises Damaged."""
        found: dict[str, Tensor] = {}
        for file, data in self.files.items():
            for place, piece in inside(self.manifest, file, data):
                if place.lengths == place.shape:
                    found[place.name] = piece
                    continue
                whole = found.setdefault(place.name, torch.zeros(place.shape, dtype=piece.dtype))
                region(whole, place.offsets, place.lengths).copy_(piece)
        return found


def inside(manifest: Manifest, file: str, data: bytearray) -> Iterator[tuple[Place, Tensor]]:
    """The tensors of a file that was proven, and what they are parts of; raises Damaged."""
    try:
        tensors = tensorfile.decode(data)
    except NotTensors as error:
        raise Damaged(f"{file} {error}") from error
    places = manifest.pieces.get(file, {})
    if tensors.keys() != places.keys() or any(list(tensors[key].shape) != places[key].lengths for key in places):
        raise Damaged(f"{file} holds other tensors than its manifest says")
    for key, place in places.items():
        yield place, tensors[key]


def whole(name: str, tensor: Tensor) -> Place:
    """The place of a tensor that is not cut."""
    shape = list(tensor.shape)
    return Place(name=name, dtype=tensorfile.NAMES[tensor.dtype], shape=shape, offsets=[0] * len(shape), lengths=shape)


def region(tensor: Tensor, offsets: Sequence[int], lengths: Sequence[int]) -> Tensor:
    """The view of a tensor that begins at `offsets` and is `lengths` long along each dimension."""
    for dimension, (start, length) in enumerate(zip(offsets, lengths, strict=True)):
        tensor = tensor.narrow(dimension, start, length)
    return tensor


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a checkpoint folder, its seal and name proven; raises Damaged, and OSError as `reading` does."""
    with reading(folder / MANIFEST) as file:
        manifest = parse(file.read())
    if folder.name != folder_name(manifest.step):
        raise Damaged(f"the manifest is that of step {manifest.step}")
    return manifest


def parse(text: bytes) -> Manifest:
    """The manifest, where it is what its seal says; raises Damaged."""
    try:
        document = json.loads(text)
        body = document["body"]
        if document["seal"] != seal(canonical(body)):
            raise Damaged("the manifest is not what was written")
        if body["version"] != VERSION:
            raise Damaged(f"the manifest has version {body['version']}, this program reads {VERSION}")
        files = {name: Written(**entry) for name, entry in body["files"].items()}
        pieces = {file: {key: Place(**p) for key, p in keys.items()} for file, keys in body["pieces"].items()}
        return Manifest(**{**body, "files": files, "pieces": pieces})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Damaged("the manifest is not what was written") from error


def read(folder: Path) -> Contents:
    """The checkpoint with all its files, their bytes proven before any of them is used; raises Damaged, and OSError as
    `reading` does."""
    manifest = read_manifest(folder)
    return Contents(manifest=manifest, files={name: proven(folder, manifest, name) for name in manifest.files})


def proven(folder: Path, manifest: Manifest, name: str) -> bytearray:
    """A file's bytes; raises Damaged where they are not those of the manifest, and OSError as `reading` does."""
    path, want = folder / name, manifest.files[name]
    if path.parent != folder:
        raise Damaged(f"the manifest names {name}, which is outside")
    with reading(path) as file:
        data = bytearray(want.bytes)
        whole = file.readinto(data) == want.bytes and not file.read(1)
    if not whole or hashlib.sha256(data).hexdigest() != want.sha256:
        raise Damaged(f"{name} is not what was written")
    return data


@contextmanager
def reading(path: Path) -> Iterator[BufferedReader]:
    """An open file of a checkpoint. Raises Damaged where it is missing. Where it cannot be read that says nothing about
    the checkpoint, which another try may find good (a file server comes back): an OSError, with what to do."""
    try:
        with path.open("rb") as file:
            yield file
    except FileNotFoundError as error:
        raise Damaged(f"{path.name} is missing") from error
    except OSError as error:
        remedy = "the checkpoint may be good: start again when it can be read, or move it away"
        raise OSError(error.errno, f"{error.strerror}: {remedy}", str(path)) from error


def canonical(body: Mapping[str, Any]) -> str:
    """The one text of a manifest's body. Written in one go: the step loop waits while the interpreter is busy here."""
    return json.dumps(body, sort_keys=True, default=vars)


def seal(body: str) -> str:
    """sha256 over that text: a flipped bit in the manifest itself shows."""
    return hashlib.sha256(body.encode()).hexdigest()
