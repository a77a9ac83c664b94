"""A fingerprint of a training state: sha256 over all tensors by name."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from training.checkpoint.manifest import CorruptCheckpointError, read
from training.checkpoint.safetensors_file import raw


def digest(tensors: Mapping[str, Tensor]) -> str:
    """sha256 in hex over name, type, shape and values of every tensor, in the order of the names.

    Equal for equal values, whatever the memory layout, the device and the file they came from.
    """
    total = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu()
        total.update(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        total.update(raw(tensor))
    return total.hexdigest()


def of_folder(folder: Path) -> str:
    """The digest of a checkpoint, after its manifest was verified; raises CorruptCheckpointError."""
    if not folder.is_dir():
        raise CorruptCheckpointError("is no checkpoint folder")
    return digest(read(folder.resolve()).tensors())
