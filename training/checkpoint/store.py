"""Checkpoint folders that never load wrong: written aside, synced, sealed by a manifest, renamed; proven when read."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, BinaryIO

import torch
from torch import Tensor

MANIFEST = "manifest.json"


class Damaged(Exception):
    """This checkpoint must not be loaded; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Contents:
    """A verified checkpoint: the very bytes of its files that were hashed, and what its manifest says about them."""

    step: int
    about: dict[str, Any]
    files: dict[str, bytes]

    def tensors(self) -> dict[str, Tensor]:
        """All tensors by name, over all files."""
        return {name: tensor for data in self.files.values() for name, tensor in unpack(data).items()}


@dataclass(kw_only=True)
class Found:
    """The newest valid checkpoint, if any, and what was passed over on the way to it."""

    contents: Contents | None = None
    passed_over: list[tuple[Path, str]] = field(default_factory=list)


class Store:
    """A folder of checkpoints, one a step, named by it and never changed after its rename. The newest `keep` stay."""

    def __init__(self, root: Path, keep: int = 2) -> None:
        self.root, self.keep = root, keep
        root.mkdir(parents=True, exist_ok=True)

    def folders(self) -> list[Path]:
        """Committed checkpoints, oldest first."""
        return sorted(self.root.glob("step-*"))

    def save(self, step: int, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> Path:
        """Writes and commits the checkpoint of a step, durable on return; about: JSON values for the manifest."""
        final = self.root / f"step-{step:08d}"
        aside = self.root / f".writing-{final.name}-{os.getpid()}"
        if aside.exists():  # of an earlier try of this process
            shutil.rmtree(aside)
        aside.mkdir()
        files = {"rank-0.pt": write(aside / "rank-0.pt", tensors)}
        body = {"version": 1, "step": step, "torch": torch.__version__, "files": files, "about": dict(about)}
        with (aside / MANIFEST).open("wb") as file:
            file.write(json.dumps({"body": body, "seal": seal(body)}, indent=1).encode())
            sync(file)
        sync_folder(aside)
        self.commit(aside, final)
        for old in self.folders()[: -self.keep]:
            shutil.rmtree(old)
        return final

    def commit(self, aside: Path, final: Path) -> None:
        """Renames into place. A valid checkpoint of that step stays as it is; a damaged one makes room."""
        try:
            aside.rename(final)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            try:
                read(final)
                shutil.rmtree(aside)
            except Damaged:
                self.set_aside(final)
                aside.rename(final)
        sync_folder(self.root)

    def set_aside(self, folder: Path) -> None:
        """Takes a damaged checkpoint out of the way, for a person to look at."""
        resting = self.root / f"damaged-{folder.name}"
        if resting.exists():
            shutil.rmtree(resting)
        folder.rename(resting)

    def clear_unfinished(self) -> None:
        """Removes what killed processes left half-written; only before this run's first save."""
        for folder in self.root.glob(".writing-*"):
            shutil.rmtree(folder)

    def newest(self) -> Found:
        """The newest checkpoint whose bytes are those its manifest names. File times are never asked."""
        found = Found()
        for folder in reversed(self.folders()):
            try:
                found.contents = read(folder)
                return found
            except Damaged as why:
                found.passed_over.append((folder, str(why)))
        return found


class HashingFile:
    """Passes what is written on to a file and hashes it on the way."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.hash, self.size = file, hashlib.sha256(), 0

    def write(self, data: bytes) -> int:
        self.hash.update(data)
        self.size += len(data)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()


def write(path: Path, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """Writes the tensors durably; returns size and sha256 of exactly what was written."""
    with path.open("wb") as file:
        hashing = HashingFile(file)
        torch.save(dict(tensors), hashing)  # pyright: ignore[reportArgumentType]
        sync(file)
    return {"bytes": hashing.size, "sha256": hashing.hash.hexdigest()}


def read(folder: Path) -> Contents:
    """The checkpoint, its bytes proven against the manifest before any of them is unpickled; raises Damaged."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        body, sealed = manifest["body"], manifest["seal"]
        if sealed != seal(body):
            raise Damaged("the manifest is not what was written")
        if folder.name != f"step-{body['step']:08d}":
            raise Damaged(f"the manifest is that of step {body['step']}")
        files = {name: proven(folder / name, want["bytes"], want["sha256"]) for name, want in body["files"].items()}
        return Contents(step=body["step"], about=body["about"], files=files)
    except FileNotFoundError as error:
        raise Damaged(f"{Path(error.filename).name} is missing") from error
    except OSError as error:
        raise Damaged(f"cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Damaged("the manifest is not what was written") from error


def proven(path: Path, size: int, sha256: str) -> bytes:
    """The file's bytes; raises Damaged where they are not those of the manifest."""
    data = path.read_bytes()
    if len(data) != size or hashlib.sha256(data).hexdigest() != sha256:
        raise Damaged(f"{path.name} is not what was written")
    return data


def unpack(data: bytes) -> dict[str, Tensor]:
    """Tensors by name; torch refuses everything else in the file (weights_only). Raises Damaged."""
    try:
        return torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except (UnpicklingError, RuntimeError) as error:
        raise Damaged("holds something else than tensors") from error


def seal(body: Mapping[str, Any]) -> str:
    """sha256 over the manifest's canonical text: a flipped bit in the manifest itself shows."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Makes names in the folder durable (a rename is not, until its folder is synced)."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
