"""`python tests/bench/against.py REF [--only NAME…] [--rounds K] [--json]`: time against an earlier commit.

start   `training launch smoke` with two ranks, from the command to its end: 20 steps, nearly all of it is start
steps   seconds of a step of the MNIST job on two ranks, as its own result states them
nodes   gpu_node.yml on two fresh nodes that are processes, then once more on the same two
plan    `gpufleet plan` of the shipped stack that takes longest

The two sides alternate, each in a process of its own with the same interpreter and packages; the result is the median
of the rounds' own ratios, this code by the earlier one, with the least and the greatest beside it. Nothing fails by a
figure: the exit code is 0.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from training.bench.figure import machine

REPOSITORY = Path(__file__).resolve().parents[2]

LAUNCH = """
import json, subprocess, sys, tempfile, time
from pathlib import Path
with tempfile.TemporaryDirectory() as folder:
    command = [sys.executable, "-m", "training", "launch", *sys.argv[1:], "--nproc", "2", "--set", f"out={folder}/run"]
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - start
    result = json.loads(Path(folder, "run", "result.json").read_text())
    print(json.dumps({"start": seconds, "steps": 1 / result["samples_per_second"]}))
"""
NODES = """
import json, sys, tempfile, time
from pathlib import Path
sys.path.insert(0, "tests/lab")
import ssh_hosts
seconds = []
with tempfile.TemporaryDirectory() as folder, ssh_hosts.running(Path(folder), 2) as site:
    for _ in range(2):
        start = time.perf_counter()
        played = site.play("gpu_node.yml")
        seconds.append(time.perf_counter() - start)
        assert played.code == 0, played.output
print(json.dumps({"nodes, first run": seconds[0], "nodes, second run": seconds[1]}))
"""
PLAN = """
import json, subprocess, sys, time
start = time.perf_counter()
subprocess.run([sys.executable, "-m", "ops", "plan", sys.argv[1], "--json"], check=True, stdout=subprocess.DEVNULL)
print(json.dumps({"plan": time.perf_counter() - start}))
"""
MEASURES = {  # the program, its arguments, and which of its figures count: all where none is named
    "start": (LAUNCH, ("smoke",), ("start",)),
    "steps": (LAUNCH, ("mnist", "--set", "steps=400"), ("steps",)),
    "nodes": (NODES, (), ()),
    "plan": (PLAN, ("h100-block",), ()),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python tests/bench/against.py", allow_abbrev=False)
    parser.add_argument("ref", metavar="REF", help="the earlier commit")
    parser.add_argument("--only", choices=MEASURES, nargs="+", default=list(MEASURES), help="what to measure (all)")
    parser.add_argument("--rounds", type=int, default=5, metavar="K", help="rounds of each side (%(default)s)")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of text")
    arguments = parser.parse_args()
    with earlier(arguments.ref) as before:
        ratios = measure(before, arguments.rounds, arguments.only)
    figures = {
        name: {"median": median(values), "least": min(values), "greatest": max(values)}
        for name, values in ratios.items()
    }
    document = {"machine": machine(), "against": arguments.ref, "rounds": arguments.rounds, "ratios": figures}
    print(json.dumps(document) if arguments.json else text(document))


@contextmanager
def earlier(ref: str) -> Iterator[Path]:
    """A checkout of that commit, for as long as the context lasts."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "before")
        git = ["git", "-C", str(REPOSITORY), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(place), "--end-of-options", ref], check=True)
        try:
            yield place
        finally:
            subprocess.run([*git, "remove", "--force", str(place)], check=True)


def measure(before: Path, rounds: int, names: Sequence[str]) -> dict[str, list[float]]:
    """The ratios of every figure, round by round."""
    ratios: dict[str, list[float]] = {}
    for number in range(rounds):
        for code, words, only in (MEASURES[name] for name in names):
            order = (before, REPOSITORY) if number % 2 else (REPOSITORY, before)  # none is always the second
            seconds = {tree: run(code, words, tree) for tree in order}
            for name in only or seconds[before]:
                ratios.setdefault(name, []).append(seconds[REPOSITORY][name] / seconds[before][name])
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return ratios


def run(code: str, words: tuple[str, ...], tree: Path) -> dict[str, float]:
    """The seconds that the code prints, run by the files of that tree."""
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    ended = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=tree, env=environment, capture_output=True, text=True, check=False
    )
    if ended.returncode:
        sys.exit(f"{tree}: {ended.stderr.strip()[-2000:]}")
    return json.loads(ended.stdout.splitlines()[-1])


def text(document: dict[str, dict[str, dict[str, float]]]) -> str:
    lines = ["  ".join(f"{key} {value}" for key, value in document["machine"].items())]
    lines.append(f"seconds of this code by those of {document['against']}, {document['rounds']} rounds of each")
    lines += [
        f"  {name:<20}{figure['median']:>6.3f}  ({figure['least']:.3f} to {figure['greatest']:.3f})"
        for name, figure in document["ratios"].items()
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
