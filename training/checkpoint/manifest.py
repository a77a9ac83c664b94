"""The manifest of a checkpoint: its step, its files with size and sha256, and where each tensor is in them."""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BufferedReader
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from training import strict
from training.checkpoint import safetensors_file
from training.checkpoint.naming import folder_name
from training.checkpoint.safetensors_file import InvalidTensorFileError, Written

MANIFEST = "manifest.json"
VERSION = 2
MOST_BYTES = 64 * 2**20  # of a manifest: some 300,000 pieces
FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
SHA256 = re.compile(r"[0-9a-f]{64}")


class CorruptCheckpointError(Exception):
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

    def check(self) -> int:
        """The bytes it takes; raises CorruptCheckpointError where it is no part of a tensor."""
        sides = (self.shape, self.offsets, self.lengths)
        if not isinstance(self.name, str) or not all(isinstance(side, list) for side in sides):
            raise CorruptCheckpointError("the manifest has a piece that is of no tensor")
        if self.dtype not in safetensors_file.TYPES or len({len(side) for side in sides}) > 1:
            raise CorruptCheckpointError(
                f"the manifest has {self.name[:40]!r} with another type or number of dimensions"
            )
        if not safetensors_file.possible(self.shape) or not all(map(strict.whole, (*self.offsets, *self.lengths))):
            raise CorruptCheckpointError(f"the manifest has {self.name[:40]!r} in a shape that cannot be")
        if any(start + length > whole for whole, start, length in zip(*sides, strict=True)):
            raise CorruptCheckpointError(f"the manifest has a piece that reaches out of {self.name[:40]!r}")
        return math.prod(self.lengths) * safetensors_file.TYPES[self.dtype].itemsize


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """pieces: by file, then by key in it. signature: HMAC-SHA256 of the body by the job's key, if it has one."""

    step: int
    about: dict[str, Any]
    files: dict[str, Written]
    pieces: dict[str, dict[str, Place]]
    torch: str = torch.__version__
    version: int = VERSION
    signature: str | None = None

    def signed(self, key: bytes | None) -> Manifest:
        """With the signature of this key; as it is without one."""
        return self if key is None else replace(self, signature=signature(self._body(), key))

    def check(self) -> None:
        """Raises CorruptCheckpointError where a value has the wrong type, a name is not a plain file name, or the
        pieces ask for more memory than the files have bytes."""
        if not strict.whole(self.step) or not strict.whole(self.about.get("world_size", 1), least=1):
            raise CorruptCheckpointError("the manifest's step or world size is no whole number")
        if not isinstance(self.about.get("recipe", {}), dict) or not isinstance(self.torch, str):
            raise CorruptCheckpointError("the manifest's recipe or torch is of another kind")
        if self.signature is not None and not SHA256.fullmatch(self.signature):
            raise CorruptCheckpointError("the manifest's signature is none")
        for name, written in self.files.items():
            if not FILE_NAME.fullmatch(name) or name == MANIFEST:
                raise CorruptCheckpointError(f"the manifest names {name[:40]!r}, which is outside, or no plain name")
            if not strict.whole(written.bytes) or not SHA256.fullmatch(written.sha256):
                raise CorruptCheckpointError(f"the manifest's size or sha256 of {name} is none")
            if sum(place.check() for place in self.pieces.get(name, {}).values()) > written.bytes:
                raise CorruptCheckpointError(f"the manifest has more in {name} than its bytes")
        if self.pieces.keys() - self.files.keys():
            raise CorruptCheckpointError("the manifest has pieces of files that it does not name")
        self._check_whole()

    def _check_whole(self) -> None:
        """Every tensor has one shape and type, which its pieces add up to."""
        kinds: dict[str, tuple[str, list[int]]] = {}
        left: dict[str, int] = {}
        for place in (place for places in self.pieces.values() for place in places.values()):
            if kinds.setdefault(place.name, (place.dtype, place.shape)) != (place.dtype, place.shape):
                raise CorruptCheckpointError(f"the manifest has {place.name[:40]!r} in two shapes or types")
            left[place.name] = left.get(place.name, math.prod(place.shape)) - math.prod(place.lengths)
        if any(left.values()):
            raise CorruptCheckpointError("the manifest's pieces are not the whole of their tensors")

    def encoded(self) -> bytes:
        body = self._body()
        signed = f', "signature": "{self.signature}"' if self.signature else ""
        return f'{{"body": {body}, "seal": "{seal(body)}"{signed}}}'.encode()

    def _body(self) -> str:
        return canonical({name: value for name, value in vars(self).items() if name != "signature"})


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
        """All tensors by name, put together from their pieces; raises CorruptCheckpointError."""
        tensors: dict[str, Tensor] = {}
        for file, data in self.files.items():
            for place, piece in inside(self.manifest, file, data):
                if place.lengths == place.shape:
                    tensors[place.name] = piece
                    continue
                whole = tensors.setdefault(place.name, torch.zeros(place.shape, dtype=piece.dtype))
                region(whole, place.offsets, place.lengths).copy_(piece)
        return tensors


def inside(manifest: Manifest, file: str, data: bytearray) -> Iterator[tuple[Place, Tensor]]:
    """The tensors of a file that was proven, and what they are parts of; raises CorruptCheckpointError."""
    try:
        tensors = safetensors_file.decode(data)
    except InvalidTensorFileError as error:
        raise CorruptCheckpointError(f"{file} {error}") from error
    places = manifest.pieces.get(file, {})
    kinds = {key: (list(tensor.shape), safetensors_file.NAMES[tensor.dtype]) for key, tensor in tensors.items()}
    if kinds != {key: (place.lengths, place.dtype) for key, place in places.items()}:
        raise CorruptCheckpointError(f"{file} holds other tensors than its manifest says")
    for key, place in places.items():
        yield place, tensors[key]


def whole(name: str, tensor: Tensor) -> Place:
    """The place of a tensor that is not cut."""
    shape = list(tensor.shape)
    return Place(
        name=name, dtype=safetensors_file.NAMES[tensor.dtype], shape=shape, offsets=[0] * len(shape), lengths=shape
    )


def region(tensor: Tensor, offsets: Sequence[int], lengths: Sequence[int]) -> Tensor:
    """The view of a tensor that begins at `offsets` and is `lengths` long along each dimension."""
    for dimension, (start, length) in enumerate(zip(offsets, lengths, strict=True)):
        tensor = tensor.narrow(dimension, start, length)
    return tensor


def read_manifest(folder: Path, key: bytes | None = None) -> Manifest:
    """The manifest of a checkpoint folder, its seal and name proven, and its signature where there is a key; raises
    CorruptCheckpointError, and OSError as `reading` does."""
    if folder.is_symlink():
        raise CorruptCheckpointError("it is a link to another folder")
    with reading(folder / MANIFEST) as file:
        if strict.size(file) > MOST_BYTES:
            raise CorruptCheckpointError(f"the manifest is longer than {MOST_BYTES} bytes")
        manifest = parse(file.read(MOST_BYTES), key)
    if folder.name != folder_name(manifest.step):
        raise CorruptCheckpointError(f"the manifest is that of step {manifest.step}")
    return manifest


def parse(text: bytes, key: bytes | None = None) -> Manifest:
    """The manifest, where it is what its seal says, has the key's signature if one is given, and names nothing that
    cannot be; raises CorruptCheckpointError."""
    try:
        document = strict.document(text)
        body = document["body"]
        if document["seal"] != seal(canonical(body)):
            raise CorruptCheckpointError("the manifest is not what was written")
        signed = document.get("signature")
        if key is not None and not hmac.compare_digest(str(signed).encode(), signature(canonical(body), key).encode()):
            raise CorruptCheckpointError("the manifest is not signed by the key of checkpoint.key")
        if not strict.whole(version := body["version"], most=99) or version != VERSION:
            raise CorruptCheckpointError(
                f"the manifest has version {ascii(version)[:20]}, this program reads {VERSION}"
            )
        files = {name: Written(**entry) for name, entry in body["files"].items()}
        pieces = {file: {key: Place(**p) for key, p in keys.items()} for file, keys in body["pieces"].items()}
        manifest = Manifest(**{**body, "files": files, "pieces": pieces, "signature": signed})
        manifest.check()
        return manifest
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptCheckpointError("the manifest is not what was written") from error


def read(folder: Path, key: bytes | None = None) -> Contents:
    """The checkpoint with all its files, their bytes and what they hold proven before any of it is used; raises
    CorruptCheckpointError, and OSError as `reading` does. key: see `read_manifest`."""
    manifest = read_manifest(folder, key)
    files = {name: proven(folder, manifest, name) for name in manifest.files}
    for name, data in files.items():
        for _ in inside(manifest, name, data):
            pass
    return Contents(manifest=manifest, files=files)


def proven(folder: Path, manifest: Manifest, name: str) -> bytearray:
    """A file's bytes; raises CorruptCheckpointError where they are not those of the manifest, OSError as `reading`
    does."""
    want = manifest.files[name]
    with reading(folder / name) as file:
        if strict.size(file) != want.bytes:  # before there is room for so many
            raise CorruptCheckpointError(f"{name} is not what was written")
        data = bytearray(want.bytes)
        whole = file.readinto(data) == want.bytes and not file.read(1)
    if not whole or hashlib.sha256(data).hexdigest() != want.sha256:
        raise CorruptCheckpointError(f"{name} is not what was written")
    return data


@contextmanager
def reading(path: Path) -> Iterator[BufferedReader]:
    """An open file of a checkpoint. Raises CorruptCheckpointError where it is missing or not a regular file. A read
    error does not mean that the checkpoint is corrupt: it may be readable later (a file server comes back). That is an
    OSError, with what to do."""
    try:
        with strict.regular(path) as file:
            yield file
    except strict.NotRegularFileError as error:
        raise CorruptCheckpointError(str(error)) from error
    except FileNotFoundError as error:
        raise CorruptCheckpointError(f"{path.name} is missing") from error
    except OSError as error:
        remedy = "the checkpoint may be good: start again when it can be read, or move it away"
        raise OSError(error.errno, f"{error.strerror}: {remedy}", str(path)) from error


def canonical(body: Mapping[str, Any]) -> str:
    """The one text of a manifest's body. Written in one go: the step loop waits while the interpreter is busy here."""
    return json.dumps(body, sort_keys=True, default=vars)


def seal(body: str) -> str:
    """sha256 over that text: a flipped bit in the manifest itself shows."""
    return hashlib.sha256(body.encode()).hexdigest()


def signature(body: str, key: bytes) -> str:
    """HMAC-SHA256 over that text: only who has the key can make it, where the seal shows accidents alone."""
    return hmac.new(key, body.encode(), hashlib.sha256).hexdigest()
