"""The search for the newest valid checkpoint of any rank, and its distribution to all ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from training.checkpoint import manifest, safetensors_file
from training.checkpoint.manifest import Contents, CorruptCheckpointError, Manifest, proven, read_manifest
from training.checkpoint.shards import fill
from training.checkpoint.state import State
from training.checkpoint.store import NewestCheckpoint, Store
from training.config.errors import refusal
from training.parallel.process_group import Ranks

NONE, UNFIT = -1, -2  # instead of a step
REMEDY = "set another out, or remove that folder"


class Resume:
    """One search for the newest valid checkpoint, by all ranks together; both ways return its step (0: none) and
    whether every folder has it already. They raise JobError where it was trained by another recipe."""

    def __init__(
        self,
        recipe: Mapping[str, Any],
        ranks: Ranks,
        state: State,
        store: Store,
        note: Callable[[str], None],
        *,
        leading: bool,
    ) -> None:
        self._recipe, self._ranks, self._state, self._store = recipe, ranks, state, store
        self._note, self._leading = note, leading

    def whole(self) -> tuple[int, bool]:
        """A state that all ranks hold alike: read where it is, sent to the others."""
        candidate = self._store.newest(self._misfit) if self._leading else NewestCheckpoint()
        steps = self._ranks.gather(
            candidate.contents.step if candidate.contents else UNFIT if candidate.unfit else NONE
        )
        newest = max(steps)
        if newest < 0 and UNFIT in steps:
            raise refusal("out", f"{self._store.root} holds checkpoints of another model; {REMEDY}")
        for folder, why in candidate.passed_over:
            self._pass_over(folder, why)
        if newest < 0:
            return 0, False
        contents = self._shared(candidate.contents, steps.index(newest))
        self._refuse_other_recipe(contents.manifest)
        tensors = {name: t for name, t in contents.tensors().items() if not name.startswith("rank.")}
        if self._state.own():
            tensors |= self._own(candidate.contents if steps[self._ranks.rank] == newest else None, contents.manifest)
        self._state.load(tensors)
        owners = self._ranks.gather(self._leading)
        return newest, all(step == newest for step, leads in zip(steps, owners, strict=True) if leads)

    def sharded(self) -> tuple[int, bool]:
        """A state that is cut over the ranks, in a folder that they share: each proves a part of it, then reads what it
        needs."""
        names = self._ranks.gather([folder.name for folder in self._store.folders()])[0]
        for folder in (self._store.root / name for name in reversed(names)):
            faults = [fault for fault in self._ranks.gather(self._fault(folder)) if fault]
            if faults:
                if self._leading:
                    self._pass_over(folder, faults[0])
                continue
            sealed = read_manifest(folder, self._store.key)
            self._refuse_other_recipe(sealed)
            if faults := [*filter(None, self._ranks.gather(self._misfit(sealed)))]:
                raise refusal("out", f"{folder}: {faults[0]}; {REMEDY}")
            rooms = self._state.room(shapes_in(sealed))
            fill(rooms, folder, sealed)
            self._state.load(rooms)
            return sealed.step, True
        return 0, False

    def _fault(self, folder: Path) -> str | None:
        """What is wrong with this rank's part of the files."""
        try:
            sealed = read_manifest(folder, self._store.key)
            for name in list(sealed.files)[self._ranks.rank :: self._ranks.world]:
                proven(folder, sealed, name)
        except CorruptCheckpointError as why:
            return str(why)
        return None

    def _misfit(self, sealed: Manifest) -> str | None:
        """Why its tensors cannot be loaded; None where they can, or where the recipe differs, which is reported
        first."""
        if sealed.about.get("recipe", {}) != self._recipe:
            return None
        return self._state.misfit(shapes_in(sealed))

    def _pass_over(self, folder: Path, why: str) -> None:
        self._store.set_aside(folder)
        self._note(f"checkpoint {folder.name} skipped: {why}")

    def _shared(self, local: Contents | None, source: int) -> Contents:
        """The source's checkpoint on every rank: the very bytes it verified."""
        if self._ranks.world == 1:
            assert local is not None
            return local
        here = local if self._ranks.rank == source else None
        sealed = manifest.parse(self._ranks.broadcast(here.manifest.encoded() if here else None, source))
        files = {name: self._ranks.broadcast(here.files[name] if here else None, source) for name in sealed.files}
        return Contents(manifest=sealed, files={name: bytearray(data) for name, data in files.items()})

    def _own(self, local: Contents | None, sealed: Manifest) -> dict[str, Any]:
        """What was a rank's alone, from every folder that has the step; nothing where the number of ranks changed."""
        if sealed.about.get("world_size") != self._ranks.world:
            self._note("the number of ranks changed: the residuals of gradient compression are dropped")
            return {}
        alone = {name: t for name, t in (local.tensors() if local else {}).items() if name.startswith("rank.")}
        data = b"".join(safetensors_file.encoded(alone))
        parts = (self._ranks.broadcast(data, rank) for rank in range(self._ranks.world))
        return {name: tensor for part in parts for name, tensor in safetensors_file.decode(bytearray(part)).items()}

    def _refuse_other_recipe(self, sealed: Manifest) -> None:
        saved, recipe = sealed.about.get("recipe", {}), self._recipe
        for key in sorted(saved.keys() | recipe.keys()):
            if saved.get(key) != recipe.get(key):
                before = f"with {saved[key]!r}" if key in saved else "before this was noted"
                change = f"{self._store.root.parent} was trained {before}, not {recipe.get(key)!r}"
                raise refusal(key, f"{change}; {REMEDY}")


def shapes_in(sealed: Manifest) -> dict[str, torch.Size]:
    """The whole shape of every tensor, by name."""
    return {p.name: torch.Size(p.shape) for places in sealed.pieces.values() for p in places.values()}
