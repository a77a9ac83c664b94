"""`make structure`: the proofs of the repository's structure, one line each; fails when one is broken.

`python -m tools.structure --against REF` adds what takes minutes: the plans of all stacks and the digests of the
training jobs that run here are those of another commit.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tools.structure.imports import PACKAGES, circles, file_graph, package_files, tracked
from tools.structure.names import clouds_named, misnamed_exceptions, outside_uses, worn_words
from tools.structure.runs import digest_changes, plan_changes, repeated_stages
from tools.structure.walls import package_folders, upward_imports, wall_breaches

MOST_LINES, MOST_FILES = 300, 15  # of a file; in a folder
SHOWN = 20  # findings of a broken proof


@dataclass(frozen=True)
class Proof:
    """A statement about the files. findings: what contradicts it. most: how many there may be; it may only fall."""

    claim: str
    findings: Callable[[Path], Iterable[str]]
    most: int = 0


def unseen_by_ruff(root: Path) -> Iterator[str]:
    """Python files that the linter leaves out, by an exclusion or by the name of their folder."""
    command = [Path(sys.executable).with_name("ruff"), "check", ".", "--show-files"]
    shown = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.splitlines()
    seen = {str(Path(line).relative_to(root)) for line in shown}
    yield from (file for file in tracked(root, "*.py") if file not in seen)


def file_circles(root: Path) -> Iterator[str]:
    """Files that import each other in a circle when they are loaded, one line a circle."""
    for package in PACKAGES:
        yield from (" · ".join(circle) for circle in circles(file_graph(root, package_files(root, [package]))))


def folder_circles(root: Path) -> Iterator[str]:
    """Folders whose files import each other in a circle, one line a circle."""
    for package in PACKAGES:
        yield from (" · ".join(circle) for circle in circles(package_folders(root, package)))


def long_files(root: Path, *, tests: bool) -> Iterator[str]:
    """Python files with too many lines, of the tests or of everything else."""
    for file in tracked(root, "*.py"):
        if file.startswith("tests/") == tests:
            lines = len((root / file).read_text(encoding="utf-8").splitlines())
            if lines >= MOST_LINES:
                yield f"{file}: {lines} lines"


def full_folders(root: Path) -> Iterator[str]:
    """Folders with too many files, apart from the tests and the list of stacks."""
    files = [file for file in tracked(root) if not file.startswith(("tests/", "stacks/"))]
    folders = Counter(str(Path(file).parent) for file in files)
    yield from (f"{folder}: {count} files" for folder, count in sorted(folders.items()) if count > MOST_FILES)


# A number above 0 is what is left to do: it may be lowered, never raised.
PROOFS = (
    Proof("Python files that ruff does not see", unseen_by_ruff),
    Proof("circles of files", file_circles),
    Proof("circles of folders", folder_circles),
    Proof("imports from a lower layer into a higher one", upward_imports),
    Proof("imports through a wall", wall_breaches),
    Proof("files that name a cloud outside its folder", clouds_named),
    Proof("clock, chance, processes, sockets outside their modules", outside_uses),
    Proof("folders of more than 15 files", full_folders),
    Proof("files of 300 lines or more", partial(long_files, tests=False)),
    Proof("test files of 300 lines or more", partial(long_files, tests=True)),
    Proof("lines with a worn word as a name", worn_words, 2),
    Proof("exceptions whose names do not end in Error", misnamed_exceptions),
)
RUNS = (Proof("stages of `gpufleet plan` that do not run exactly once", repeated_stages),)


def main(arguments: list[str] | None = None) -> int:
    """Prints the table. Returns 0 when every proof holds, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tools.structure", description=__doc__)
    parser.add_argument("--against", metavar="REF", help="also compare plans and training digests with this commit")
    options = parser.parse_args(arguments)
    root = Path(__file__).resolve().parents[2]
    proofs = [*PROOFS, *RUNS]
    if ref := options.against:
        proofs.append(Proof(f"plans that differ from those of {ref}", partial(plan_changes, ref=ref)))
        proofs.append(Proof(f"digests that differ from those of {ref}", partial(digest_changes, ref=ref)))
    held = [report(proof, root) for proof in proofs]
    return 0 if all(held) else 1


def report(proof: Proof, root: Path) -> bool:
    """Prints a proof's line, and its findings where it is broken; returns whether it holds."""
    findings = list(proof.findings(root))
    holds = len(findings) <= proof.most
    state = "ok" if holds else "BROKEN"
    if holds and len(findings) < proof.most:
        state = f"ok, lower the limit to {len(findings)}"
    print(f"  {proof.claim:<58} {len(findings):5} of {proof.most:<5} {state}", flush=True)
    if not holds:
        print(*(f"      {finding}" for finding in findings[:SHOWN]), sep="\n")
    return holds


if __name__ == "__main__":
    sys.exit(main())
