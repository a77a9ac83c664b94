"""A folder of checkpoints: written to a temporary folder, synced, given a manifest, renamed; verified when read."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from training.checkpoint import safetensors_file
from training.checkpoint.manifest import MANIFEST, Contents, CorruptCheckpointError, Manifest, Place, read, whole
from training.checkpoint.naming import folder_name, step_of
from training.checkpoint.safetensors_file import Written


@dataclass(kw_only=True)
class NewestCheckpoint:
    """The newest valid checkpoint, if any, and what was passed over on the way to it. unfit: some of that is as it was
    written, but of another model."""

    contents: Contents | None = None
    unfit: bool = False
    passed_over: list[tuple[Path, str]] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Share:
    """What one rank added to a checkpoint that is not committed yet."""

    file: str
    written: Written
    pieces: dict[str, Place]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Share:
        """That of another rank, as `Ranks.gather` brings it."""
        pieces = {key: Place(**place) for key, place in document["pieces"].items()}
        return cls(file=document["file"], written=Written(**document["written"]), pieces=pieces)


class Store:
    """A folder of checkpoints, one a step, named by it and never changed after its rename. The newest `keep` stay, and
    one that is being read.

    run: a name that the ranks which write one checkpoint together have in common. key: what manifests are signed with;
    one that is not counts as damaged then.
    """

    def __init__(self, root: Path, keep: int = 2, run: str | None = None, key: bytes | None = None) -> None:
        self.root, self.keep, self._run, self.key = root, keep, run or str(os.getpid()), key
        root.mkdir(parents=True, exist_ok=True)

    def folders(self) -> list[Path]:
        """Committed checkpoints, oldest first."""
        steps = (step for folder in self.root.iterdir() if (step := step_of(folder.name)) is not None)
        return [folder for folder in map(self.folder, sorted(steps)) if folder.is_dir()]

    def save(self, step: int, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> Path:
        """Writes and commits the checkpoint of a step, durable on return; about: JSON values for the manifest."""
        places = {name: whole(name, tensor) for name, tensor in tensors.items()}
        folder = self.commit(step, [self.write(step, 0, tensors, places)], about)
        self.prune()
        return folder

    def write(self, step: int, rank: int, tensors: Mapping[str, Tensor], pieces: dict[str, Place]) -> Share:
        """Writes this rank's tensors aside; they count only after `commit`."""
        aside = self.aside(step)
        aside.mkdir(exist_ok=True)
        file = f"rank-{rank}.safetensors"
        return Share(file=file, written=safetensors_file.write(aside / file, tensors), pieces=pieces)

    def commit(self, step: int, shares: list[Share], about: Mapping[str, Any]) -> Path:
        """Seals what the ranks wrote and renames it into place."""
        files = {share.file: share.written for share in shares}
        pieces = {share.file: share.pieces for share in shares}
        sealed = Manifest(step=step, about=dict(about), files=files, pieces=pieces).signed(self.key)
        return self.adopt(step, sealed.encoded())

    def prune(self, being_read: Path | None = None) -> None:
        """Removes what is older than the newest `keep`, but not the folder that is being read. Raises OSError where one
        stays; the others go all the same."""
        stays: OSError | None = None
        for old in self.folders()[: -self.keep]:
            try:
                if old != being_read:
                    self.remove(old)
            except OSError as error:
                stays = stays or error
        if stays is not None:
            raise stays

    def adopt(self, step: int, manifest: bytes) -> Path:
        """Commits the files that were written aside, under this manifest."""
        aside, final = self.aside(step), self.folder(step)
        with (aside / MANIFEST).open("wb") as file:
            file.write(manifest)
            safetensors_file.sync(file)
        sync_folder(aside)
        self.place(aside, final)
        return final

    def folder(self, step: int) -> Path:
        """Where the step is once it counts."""
        return self.root / folder_name(step)

    def aside(self, step: int) -> Path:
        """Where this run writes the step before it counts."""
        return self.root / f".writing-{folder_name(step)}-{self._run}"

    def place(self, aside: Path, final: Path) -> None:
        """Renames into place. A valid checkpoint of that step stays as it is; a damaged one makes room."""
        try:
            aside.rename(final)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            try:
                read(final, self.key)
                shutil.rmtree(aside)
            except CorruptCheckpointError:
                self.set_aside(final)
                aside.rename(final)
        sync_folder(self.root)

    def remove(self, folder: Path) -> None:
        """Takes the name away first: a kill in the middle leaves nothing that looks like a checkpoint."""
        going = folder.rename(self.root / f".removing-{folder.name}-{self._run}")
        shutil.rmtree(going)

    def drop(self, step: int) -> None:
        """Removes what was written aside for a step that will not be committed."""
        if (aside := self.aside(step)).exists():
            shutil.rmtree(aside)

    def set_aside(self, folder: Path) -> None:
        """Takes a damaged checkpoint out of the way, for a person to look at."""
        resting = self.root / f"damaged-{folder.name}"
        if resting.exists():
            shutil.rmtree(resting)
        folder.rename(resting)

    def clear_unfinished(self) -> None:
        """Removes what killed processes left half-written or half-removed, and their marks; only before this run's
        first save."""
        for pattern in (".writing-*", ".removing-*"):
            for folder in self.root.glob(pattern):
                shutil.rmtree(folder)
        for mark in self.root.glob(".seen-*"):
            if not mark.name.startswith(f".seen-{self._run}-"):
                mark.unlink(missing_ok=True)  # its rank may still run

    def newest(self, misfit: Callable[[Manifest], str | None] = lambda _: None) -> NewestCheckpoint:
        """The newest checkpoint whose bytes are those of its manifest; file times do not matter.

        misfit: why one that is as it was written cannot be used.
        """
        newest = NewestCheckpoint()
        for folder in reversed(self.folders()):
            try:
                contents = read(folder, self.key)
            except CorruptCheckpointError as why:
                newest.passed_over.append((folder, str(why)))
                continue
            if (why := misfit(contents.manifest)) is None:
                newest.contents = contents
                return newest
            newest.unfit = True
            newest.passed_over.append((folder, why))
        return newest


def sync_folder(folder: Path) -> None:
    """Makes names in the folder durable (a rename is not, until its folder is synced)."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
