"""Which rank writes which part of which tensor, and back: torch.distributed.checkpoint's planners over our files.

Its storage is left out: that pickles its metadata, writes into the final folder, and hashes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import SavePlan, TensorWriteData, WriteItem, WriteItemType

from training.checkpoint import safetensors_file
from training.checkpoint.manifest import Manifest, Place, inside, proven, region
from training.parallel.process_group import Ranks

PLAIN: dict[str, Any] = {"flatten_state_dict": False, "flatten_sharded_tensors": False}


class Shares:
    """This rank's parts of a state that is cut over the ranks; what several ranks hold alike is written by one."""

    def __init__(self, tensors: Mapping[str, Tensor], ranks: Ranks) -> None:
        planner = DefaultSavePlanner(**PLAIN)
        planner.set_up_planner(dict(tensors), is_coordinator=True)
        items_of_ranks = ranks.gather([to_json(item) for item in planner.create_local_plan().items])
        plans, _ = planner.create_global_plan(
            [SavePlan([from_json(item) for item in items]) for items in items_of_ranks]
        )
        self._items = {f"{item.index.fqn}@{number}": item for number, item in enumerate(plans[ranks.rank].items)}

    def places(self) -> dict[str, Place]:
        """By key in this rank's file: which part of which tensor it is."""
        places: dict[str, Place] = {}
        for key, item in self._items.items():
            data = item.tensor_data
            assert data is not None
            places[key] = Place(
                name=item.index.fqn,
                dtype=safetensors_file.NAMES[data.properties.dtype],
                shape=list(data.size),
                offsets=list(data.chunk.offsets),
                lengths=list(data.chunk.sizes),
            )
        return places

    def live(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The live tensors of these parts, without a copy."""
        planner = DefaultSavePlanner(**PLAIN)
        planner.set_up_planner(dict(tensors))
        resolved = {key: planner.resolve_data(item) for key, item in self._items.items()}
        return {key: tensor.detach() for key, tensor in resolved.items() if isinstance(tensor, Tensor)}


def to_json(item: WriteItem) -> dict[str, Any]:
    """What this rank would write of a tensor, in plain values."""
    data, index = item.tensor_data, item.index
    assert data is not None
    return {
        "name": index.fqn,
        "at": index.offset and list(index.offset),
        "number": index.index,
        "type": item.type.name,
        "dtype": safetensors_file.NAMES[data.properties.dtype],
        "shape": list(data.size),
        "offsets": list(data.chunk.offsets),
        "lengths": list(data.chunk.sizes),
    }


def from_json(item: Mapping[str, Any]) -> WriteItem:
    """The same for torch's planner."""
    at = item["at"] and torch.Size(item["at"])
    chunk = ChunkStorageMetadata(offsets=torch.Size(item["offsets"]), sizes=torch.Size(item["lengths"]))
    properties = TensorProperties(dtype=safetensors_file.TYPES[item["dtype"]])
    return WriteItem(
        index=MetadataIndex(item["name"], at, item["number"]),
        type=WriteItemType[item["type"]],
        tensor_data=TensorWriteData(chunk=chunk, properties=properties, size=torch.Size(item["shape"])),
    )


def fill(rooms: dict[str, Tensor], folder: Path, manifest: Manifest) -> None:
    """Reads the parts that these tensors need, however the checkpoint was cut. Every file that is touched is proven
    first: raises CorruptCheckpointError."""
    planner = DefaultLoadPlanner(**PLAIN)
    planner.set_up_planner(rooms, metadata(manifest))
    needed: dict[tuple[str, tuple[int, ...]], list[Any]] = {}
    for item in planner.create_local_plan().items:
        offset = item.storage_index.offset
        assert offset is not None
        needed.setdefault((item.storage_index.fqn, tuple(offset)), []).append(item)
    for file, places in manifest.pieces.items():
        if not any((place.name, tuple(place.offsets)) in needed for place in places.values()):
            continue
        for place, piece in inside(manifest, file, proven(folder, manifest, file)):
            for item in needed.get((place.name, tuple(place.offsets)), ()):
                planner.resolve_tensor(item).copy_(region(piece, item.storage_offsets, item.lengths))


def metadata(manifest: Manifest) -> Metadata:
    """What torch's planner has to know of our pieces: shape, type and chunks of every tensor."""
    tensors: dict[str, Any] = {}
    for place in (place for places in manifest.pieces.values() for place in places.values()):
        chunk = ChunkStorageMetadata(offsets=torch.Size(place.offsets), sizes=torch.Size(place.lengths))
        properties = TensorProperties(dtype=safetensors_file.TYPES[place.dtype])
        known = tensors.setdefault(place.name, TensorStorageMetadata(properties, torch.Size(place.shape), []))
        known.chunks.append(chunk)
    return Metadata(state_dict_metadata=tensors)
