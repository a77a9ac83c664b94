"""`python -m training pack JOB FOLDER`: writes the data set of a job as arrays that any later run maps into memory."""

from __future__ import annotations

import argparse
import errno
import json
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from training import data
from training.config.data import Batching
from training.config.errors import refusal
from training.config.job import JobError, load
from training.data.images import DataError, ImageSet
from training.data.packed_format import FORMAT, MANIFEST, PARTS
from training.data.text import Documents, Running

BATCH = 256  # samples read and written at once
Part = tuple[np.dtype, tuple[int, ...], Iterator[np.ndarray]]


def main(argv: Sequence[str]) -> int:
    """Returns 0 when the folder is whole, 1 when it could not be written, 2 for a wrong job."""
    parser = argparse.ArgumentParser(prog="python -m training pack", allow_abbrev=False)
    parser.add_argument("job", metavar="JOB", help="a job file, or the name of one in training/jobs")
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="what is made")
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="set any key of the job file")
    args = parser.parse_args(argv[1:])
    try:
        job = load(args.job, args.set)
        pack(job.data, job.seed, args.folder)
    except JobError as error:
        print(error, file=sys.stderr)
        return 2
    except (DataError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def pack(config: Batching, seed: int, folder: Path) -> None:
    """Writes a temporary folder and renames it, so that the folder is complete or missing.

    Raises DataError where the folder exists or the disk has no room, JobError where the job has a fold.
    """
    if config.fold is not None:
        raise refusal("data.fold", "is drawn where a packed set is read; leave it out here")
    if folder.exists():
        raise DataError(f"{folder} is there already; name another folder, or remove it")
    samples = data.read(config, seed)
    aside = folder.with_name(f".{folder.name}-{os.getpid()}")
    aside.mkdir(parents=True)
    try:
        about: dict[str, Any] = {"format": FORMAT, "files": {}}
        for name, source in zip(PARTS, (samples.train, samples.held_out), strict=True):
            arrays = parts_of(source, samples)
            about[name] = [f"{name}-{number}.npy" for number in range(len(arrays))]
            for file, array in zip(about[name], arrays, strict=True):
                write(aside / file, array)
                about["files"][file] = (aside / file).stat().st_size
        about |= described(samples)
        (aside / MANIFEST).write_text(json.dumps(about, indent=2) + "\n")
        aside.rename(folder)
    except OSError as error:
        why = f"{error.strerror}, {shutil.disk_usage(aside).free / 1e9:.2f} GB are free"
        raise DataError(f"{folder} cannot be packed: {why}; free some, or name a folder on another disk") from error
    finally:
        if aside.exists():
            shutil.rmtree(aside)
    print(f"{folder}: {len(samples.train)} samples to train on, {len(samples.held_out)} held out")


def parts_of(source: Any, samples: data.DataSet) -> list[Part]:
    """The arrays of a part: type, shape and pieces in order."""
    if isinstance(source, Running):
        return [(source.tokens.dtype, source.tokens.shape, pieces(source.tokens))]
    if isinstance(source, Documents):
        arrays = (source.tokens, source.labels, source.families)
        return [(array.dtype, array.shape, pieces(array)) for array in arrays if array is not None]
    count, labels = len(source), np.empty(len(source), dtype=np.int64)

    def images() -> Iterator[np.ndarray]:
        for start in range(0, count, BATCH):
            batch, answers = source.at(np.arange(start, min(start + BATCH, count)), None)
            labels[start : start + BATCH] = answers.numpy()
            yield batch.numpy()

    return [(np.dtype(np.uint8), (count, *source.shape), images()), (labels.dtype, labels.shape, pieces(labels))]


def pieces(array: np.ndarray) -> Iterator[np.ndarray]:
    step = max(1, 2**24 // max(1, array[:1].nbytes))
    for start in range(0, len(array), step):
        yield array[start : start + step]


def write(path: Path, part: Part) -> None:
    """An .npy file, piece by piece and synced, with a line of progress; raises OSError before it fills the disk."""
    kind, shape, arrays = part
    size = int(np.prod(shape)) * kind.itemsize
    if size > shutil.disk_usage(path.parent).free:
        raise OSError(errno.ENOSPC, f"{path.name} needs {size / 1e9:.2f} GB")
    done = 0
    with path.open("wb") as file:
        header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_2_0(file, header)
        for array in arrays:
            file.write(np.ascontiguousarray(array).data)
            done += len(array)
            if sys.stderr.isatty():
                print(f"\r{path.name} {done:,} of {shape[0]:,}", end="", file=sys.stderr, flush=True)
        file.flush()
        os.fsync(file.fileno())
    if sys.stderr.isatty():
        print(file=sys.stderr)


def described(samples: data.DataSet) -> dict[str, Any]:
    """The manifest's fields about the data set."""
    if isinstance(samples, ImageSet):
        return {"kind": "images", "classes": samples.classes, "mean": samples.mean, "std": samples.std}
    kind = "documents" if samples.classes else "running"
    return {"kind": kind, "classes": samples.classes, "vocabulary": samples.vocabulary, "tokenizer": samples.tokenizer}
