"""Tensors in a file, in safetensors' layout: a JSON header of names, types, shapes and places, then raw bytes.

Nothing in it can be code. Layout: https://huggingface.co/docs/safetensors (8 bytes of header length, little-endian).
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from training import strict
from training.checkpoint.direct_io import BLOCK_BYTES, DirectFile, blocks

TYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
    "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8,
    "U8": torch.uint8, "BOOL": torch.bool,
}  # fmt: skip
NAMES = {kind: name for name, kind in TYPES.items()}


MOST_DIMENSIONS, MOST_NUMBERS = 32, 2**48


class InvalidTensorFileError(Exception):
    """The bytes are no tensor file; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Written:
    """Size and sha256 of exactly the bytes that went to the file."""

    bytes: int
    sha256: str


def write(path: Path, tensors: Mapping[str, Tensor]) -> Written:
    """Writes CPU tensors durably; each whole block is hashed while it is written. Raises OSError where the disk is
    full or gone."""
    sha256, size = hashlib.sha256(), 0
    with DirectFile(path) as file, ThreadPoolExecutor(1, "checkpoint block") as disk:
        for block in blocks(encoded(tensors)):
            if len(block) == BLOCK_BYTES:
                writing = disk.submit(file.write, block)
                sha256.update(block)
                writing.result()
            else:  # the last: to start a thread beside the step loop may take longer than both
                file.write(block)
                sha256.update(block)
            size += len(block)
        file.sync()
    return Written(bytes=size, sha256=sha256.hexdigest())


def encoded(tensors: Mapping[str, Tensor]) -> Iterator[memoryview]:
    """The header, then every tensor's bytes in row-major order, wide types first, so that each stands aligned."""
    order = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    header: dict[str, Any] = {}
    place = 0
    for name in order:
        tensor, start = tensors[name], place
        place += tensor.numel() * tensor.element_size()
        header[name] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [start, place]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    yield memoryview(struct.pack("<Q", len(text)) + text)
    for name in order:
        yield raw(tensors[name])


def raw(tensor: Tensor) -> memoryview:
    """The bytes of a CPU tensor in row-major order."""
    flat = tensor.detach().contiguous().reshape(-1)
    return memoryview(flat.view(torch.uint8).numpy())  # pyright: ignore[reportArgumentType]


def decode(data: bytearray) -> dict[str, Tensor]:
    """Tensors by name that share the memory of `data`; raises InvalidTensorFileError where it is anything else."""
    try:
        (length,) = struct.unpack_from("<Q", data)
        if length > len(data) - 8:
            raise InvalidTensorFileError("its header is longer than the file")
        header = strict.document(data[8 : 8 + length])
        return {name: tensor_at(data, 8 + length, entry) for name, entry in header.items() if name != "__metadata__"}
    except (struct.error, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise InvalidTensorFileError("holds something else than tensors") from error


def tensor_at(data: bytearray, base: int, entry: dict[str, Any]) -> Tensor:
    kind, shape, (start, end) = TYPES[entry["dtype"]], entry["shape"], entry["data_offsets"]
    if not isinstance(shape, list) or not possible(shape) or not strict.whole(start) or not strict.whole(end):
        raise InvalidTensorFileError("a shape or place in it cannot be")
    count = math.prod(shape)
    if end - start != count * kind.itemsize or base + end > len(data):
        raise InvalidTensorFileError("a tensor in it reaches beyond its bytes")
    if count == 0:
        return torch.empty(shape, dtype=kind)
    return torch.frombuffer(data, dtype=kind, count=count, offset=base + start).view(shape)


def possible(shape: list[Any]) -> bool:
    """Whether it is the shape of a tensor: few whole numbers, whose product a computer could address."""
    whole = len(shape) <= MOST_DIMENSIONS and all(map(strict.whole, shape))
    return whole and math.prod(filter(None, shape)) <= MOST_NUMBERS


def sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
