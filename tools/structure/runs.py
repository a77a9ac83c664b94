"""What the program does, compared with another commit: plans of all stacks, digests of short training jobs.

Both commits run with this checkout's environment: a change of requirements.txt is not what this compares.
"""

from __future__ import annotations

import base64
import difflib
import json
import os
import pstats
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LINES = 3  # of a difference that are shown
CUT = 160  # characters of each of them

# What a plan must do exactly once, as (file, function).
STAGES = (
    ("infra/spec/load.py", "load"),
    ("infra/evaluate.py", "decide"),
    ("infra/checks/__init__.py", "check"),
)

# Short jobs that train the same way everywhere: no download, each with every kind of layer of its model.
GPT = "[model]\nkind = 'gpt'\nlayers = 2\nheads = 2\nwidth = 32\n"
ENCODER = "[model]\nkind = 'text-encoder'\nlayers = 2\nheads = 2\nwidth = 32\n"
DOCUMENT = """steps = 12
seed = 1
{model}
[data]
kind = 'synthetic-text'
samples = 256
length = 32
global_batch = 16
classes = {classes}

[optimizer]
kind = 'adamw'
lr = 0.002
clip_norm = 1.0
"""
JOBS = {
    "smoke": "",
    "mnist": "",
    "gpt": DOCUMENT.format(model=GPT, classes=0),
    "encoder": DOCUMENT.format(model=ENCODER, classes=4),
}
SHORT = {"mnist": ("steps=60", "eval.every_steps=30")}
RANKS = (1, 2)


def repeated_stages(root: Path) -> Iterator[str]:
    """The stages that `gpufleet plan` does not run exactly once, as `file function: N times`; takes some seconds."""
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder, "profile")
        _run(root, "-m", "cProfile", "-o", str(profile), "-m", "ops", "plan", "local", "--json")
        rows = pstats.Stats(str(profile)).stats  # type: ignore[attr-defined]
    for file, function in STAGES:
        times = sum(row[0] for (path, _, name), row in rows.items() if path.endswith(file) and name == function)
        if times != 1:
            yield f"{file} {function}: {times} times"


def plan_changes(root: Path, ref: str) -> Iterator[str]:
    """Stacks whose plan is another one than at `ref`, each with its first different lines."""
    with worktree(root, ref) as other:
        stacks = {path.stem.removeprefix("Pulumi.") for tree in (root, other) for path in tree.glob("stacks/*.yaml")}
        for stack in sorted(stacks):
            before, after = plan(other, stack), plan(root, stack)
            if before != after:
                different = [line[:CUT] for line in difflib.unified_diff(before, after, lineterm="", n=0)]
                yield "\n        ".join([stack, *different[3 : 3 + LINES]])


def plan(root: Path, stack: str) -> list[str]:
    """The lines of `gpufleet plan STACK --json`, without what names the checkout or hashes its files."""
    printed = _run(root, "-m", "ops", "plan", stack, "--json", check=False)
    decoded = re.sub(r'"([A-Za-z0-9+/]{200,}={0,2})"', _decoded, printed)
    return re.sub(r"[0-9a-f]{64}", "SHA256", decoded.replace(str(root), "ROOT")).splitlines()


def _decoded(literal: re.Match[str]) -> str:
    """A user data in base64 as its text: it names the checkout and the bundle too."""
    try:
        return base64.b64decode(literal[1], validate=True).decode()
    except ValueError:
        return literal[0]


def digest_changes(root: Path, ref: str) -> Iterator[str]:
    """Jobs whose trained weights are other ones than at `ref`, as `job on N ranks: digest, at REF: digest`."""
    with worktree(root, ref) as other:
        for job in JOBS:
            for ranks in RANKS:
                before, after = digest(other, job, ranks), digest(root, job, ranks)
                if before != after:
                    yield f"{job} on {ranks} ranks: {after}, at {ref}: {before}"


def digest(root: Path, job: str, ranks: int) -> str:
    """The sha256 over all tensors that a job ends with."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"{job}.toml")
        file.write_text(JOBS[job] or (root / "training" / "jobs" / f"{job}.toml").read_text())
        keys = [f"out={folder}/run", *SHORT.get(job, ())]
        settings = [word for key in keys for word in ("--set", key)]
        _run(root, "-m", "training", "launch", str(file), "--nproc", str(ranks), *settings)
        (result,) = Path(folder).rglob("result.json")
        return str(json.loads(result.read_text())["digest"])


@contextmanager
def worktree(root: Path, ref: str) -> Iterator[Path]:
    """A checkout of `ref`, with the engine that this checkout found, for as long as the context lasts."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree").resolve()
        _git(root, "worktree", "add", "--quiet", "--detach", str(tree), ref)
        try:
            (tree / ".gpufleet").mkdir()
            shutil.copy(root / ".gpufleet" / "engine", tree / ".gpufleet" / "engine")
            yield tree
        finally:
            _git(root, "worktree", "remove", "--force", str(tree))


def _git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=root, check=True)


def _run(root: Path, *arguments: str, check: bool = True) -> str:
    """What this interpreter prints, with the packages of the checkout `root`. Raises RuntimeError where it fails."""
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    if check and done.returncode:
        raise RuntimeError(f"{root}: {' '.join(arguments)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout
