"""`bench accuracy` and `bench accuracy-spam`: shipped jobs on two ranks through the launcher, three seeds."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import mean

from training.bench.figure import BenchError, Figure
from training.config.job import load
from training.data import download
from training.metrics.result import RESULT

SEEDS = (1, 2, 3)
RANKS = 2


def measure() -> Figure:
    """Mean share of the 1,000 held-out digits that is right; the goal's time is 60 s a seed."""
    return of_job("mnist", "accuracy", 0.985)


def spam() -> Figure:
    """Mean share of the held-out e-mails that is judged rightly; the goal's time is 120 s a seed."""
    download.fetched("spam")
    return of_job("spam", "accuracy-spam", 0.975)


def of_job(job: str, name: str, goal: float) -> Figure:
    with tempfile.TemporaryDirectory() as folder:
        runs = {seed: launched(job, Path(folder) / f"seed-{seed}", f"seed={seed}") for seed in SEEDS}
    loaded = load(job, [])
    return Figure(
        name=name,
        what=f"{job} on {RANKS} ranks through the launcher, mean of {len(SEEDS)} seeds",
        value=mean(accuracy for accuracy, _ in runs.values()),
        goal=goal,
        rows={f"seed {seed}": f"{accuracy:.2%} in {seconds:.1f} s" for seed, (accuracy, seconds) in runs.items()},
        settings={"job": f"{loaded.model.kind}, global batch {loaded.data.global_batch}, {loaded.precision.compute}"},
    )


def launched(job: str, out: Path, *settings: str) -> tuple[float, float]:
    """Accuracy and seconds of one launch on two ranks, start-up included; settings as `--set` takes them."""
    command = [sys.executable, "-m", "training", "launch", job, "--nproc", str(RANKS)]
    options = [part for setting in (*settings, f"out={out}") for part in ("--set", setting)]
    start = time.perf_counter()
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"the launch of {out.name} ended with exit code {done.returncode}: {done.stderr.strip()}")
    return json.loads((out / RESULT).read_text())["accuracy"], time.perf_counter() - start
