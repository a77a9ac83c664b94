"""`python tests/bench/plan.py [STACK…] [--rounds K] [--json]`: what `gpufleet plan` costs in time.

cold    every shipped stack as a person asks for it, a process each time, in turns; and of that what is ours: the
        same plan in a process that has imported everything beforehand, tables unread, so neither SDK nor Python's
        start is in it
nodes   the same AWS cluster with 4 and with 1,000 nodes, in turns in one process: time, and number of resources

The least of K turns counts, since noise only ever adds. A figure that is missed is told; the exit code is 0 anyway.
"""

from __future__ import annotations

import argparse
import gc
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from training.bench.figure import machine

REPOSITORY = Path(__file__).resolve().parents[2]
COLD_SECONDS, OURS_SECONDS, MOST_RATIO = 4.0, 1.0, 1.1

WHOLE = """
import sys
from ops.__main__ import main
sys.argv = ["gpufleet", "plan", sys.argv[1], "--json"]
main()
"""
MODULES = """
import contextlib, io, sys
from importlib.util import _LazyModule
from ops.__main__ import main
sys.argv = ["gpufleet", "plan", sys.argv[1], "--json"]
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    main()
print(*(name for name, module in sys.modules.items() if type(module) is not _LazyModule))
"""
OURS = """
import contextlib, importlib, io, sys, time
for name in sys.stdin.read().split():
    with contextlib.suppress(ImportError):
        getattr(importlib.import_module(name), "__doc__")  # a lazy module loads when it is asked for anything
from ops.__main__ import main
sys.argv = ["gpufleet", "plan", sys.argv[1], "--json"]
start = time.perf_counter()
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    main()
print(time.perf_counter() - start)
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python tests/bench/plan.py", allow_abbrev=False)
    parser.add_argument("stacks", nargs="*", metavar="STACK", help="only these (every shipped one)")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of text")
    parser.add_argument("--rounds", type=int, default=5, metavar="K", help="turns of each side (%(default)s)")
    asked = parser.parse_args()
    versions = {name: version(name) for name in ("pulumi", "pulumi-aws", "pydantic")}
    told = {
        "machine": machine() | versions,
        "cold": cold(asked.stacks or shipped(), asked.rounds),
        "nodes": nodes(asked.rounds),
    }
    print(json.dumps(told) if asked.json else text(told))


def shipped() -> list[str]:
    return sorted(file.stem.removeprefix("Pulumi.") for file in (REPOSITORY / "stacks").glob("Pulumi.*.yaml"))


def cold(stacks: Sequence[str], rounds: int) -> dict[str, dict[str, float]]:
    """Seconds of each stack: the whole process, and ours."""
    modules = {stack: run(MODULES, stack).stdout for stack in stacks}
    seconds: dict[str, dict[str, list[float]]] = {stack: {"whole": [], "ours": []} for stack in stacks}
    for _ in range(rounds):
        for stack in stacks:
            start = time.perf_counter()
            run(WHOLE, stack)
            seconds[stack]["whole"].append(time.perf_counter() - start)
            seconds[stack]["ours"].append(float(run(OURS, stack, modules[stack]).stdout))
    return {stack: {side: min(turns) for side, turns in sides.items()} for stack, sides in seconds.items()}


def run(code: str, stack: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """A process of its own; a plan that is refused (1) takes as long as another."""
    command = [sys.executable, "-c", code, stack]
    ended = subprocess.run(command, cwd=REPOSITORY, input=given, capture_output=True, text=True, check=False)
    if ended.returncode not in (0, 1) or "Traceback" in ended.stderr:
        sys.exit(f"plan {stack}: {ended.stderr.strip().splitlines()[-1]}")
    return ended


def nodes(rounds: int) -> dict[str, Any]:
    """The stack a100-prod without its budget, with few nodes and with many."""
    from infra.graph import plan_document

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "stacks").mkdir()
        shutil.copy(REPOSITORY / "Pulumi.yaml", root)
        (root / "infra").symlink_to(REPOSITORY / "infra")
        file = (REPOSITORY / "stacks" / "Pulumi.a100-prod.yaml").read_text()
        for count in (4, 1000):
            large = re.sub(r"count: 4\b", f"count: {count}", re.sub(r"\n *budget:.*", "", file))
            (root / "stacks" / f"Pulumi.n{count}.yaml").write_text(large)
        seconds: dict[int, list[float]] = {4: [], 1000: []}
        resources: dict[int, int] = {}
        for turn in range(4 * rounds + 2):
            for count in sorted(seconds, reverse=turn % 2 == 1):  # none is always the one that comes second
                gc.collect()  # of the plan before; while a program is rendered nothing is collected
                start = time.perf_counter()
                resources[count] = len(plan_document(root, f"n{count}")["resources"])
                if turn >= 2:  # the first ones import
                    seconds[count].append(time.perf_counter() - start)
    few, many = (min(turns) for turns in seconds.values())
    return {"seconds": {4: few, 1000: many}, "ratio": many / few, "resources": resources}


def text(told: dict[str, Any]) -> str:
    lines = ["  ".join(f"{key} {value}" for key, value in told["machine"].items()), "", "cold process, seconds"]
    for stack, seconds in told["cold"].items():
        lines.append(f"  {stack:<16}{seconds['whole']:>6.2f}  of which ours {seconds['ours']:.2f}")
    worst, ours = (max(each[side] for each in told["cold"].values()) for side in ("whole", "ours"))
    lines += [verdict("slowest", worst, COLD_SECONDS), verdict("ours", ours, OURS_SECONDS), "", "4 against 1,000 nodes"]
    few, many = told["nodes"]["seconds"].values()
    lines += [
        f"  {few:.3f} s and {many:.3f} s; resources {' and '.join(map(str, told['nodes']['resources'].values()))}"
    ]
    return "\n".join([*lines, verdict("ratio", told["nodes"]["ratio"], MOST_RATIO)])


def verdict(name: str, value: float, goal: float) -> str:
    return f"  {name:<16}{value:>6.2f}  goal {goal:g} or less: {'reached' if value <= goal else 'missed'}"


if __name__ == "__main__":
    main()
