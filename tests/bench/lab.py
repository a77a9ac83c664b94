"""What gpu_node.yml costs on machines of the lab: the second run against the first, and 16 machines against 8.

    python tests/bench/lab.py [MACHINES …] [--rounds K] [--json]

Machines and control side share this computer's cores. Printed for each number of machines: the seconds of the first
run (everything is installed) and of the second (nothing changes), and the CPU seconds per machine: of the control side,
Ansible and its SSH clients, and of all the rest, which is the machine's own work. The numbers take turns, on machines
made anew each time; the least of K turns counts, since noise only ever adds.

The least of short times is luckier than the least of long ones. So 16 machines are held against 8 and 8, one run before
theirs and one after, which is as much work and as long; what the least single runs make of it is told beside.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "lab"))

from gpu_machines import GpuMachine, Hardware, fleet, lacking

A100 = Hardware(model="a100", gpu="A100-SXM4-80GB", count=8, distribution="debian12")
SECOND_RUN_MOST, TWICE_THE_MACHINES_MOST = 0.8, 2.0
Turn = dict[str, dict[str, float]]  # of the first run and of the second: seconds, CPU per machine, what changed


def run(machine: GpuMachine) -> dict[str, float]:
    """One run over all machines."""
    control, everybody, began = of_children(), of_all(), time.monotonic()
    played = machine.play()
    assert played.code == 0, played.output
    seconds, control, everybody = time.monotonic() - began, of_children() - control, of_all() - everybody
    return {
        "seconds": seconds,
        "cpu_seconds_of_control": control / len(played.recap),
        "cpu_seconds_of_machine": (everybody - control) / len(played.recap),
        "changed": played.changed,
    }


def of_children() -> float:
    """CPU seconds of all children that have ended: a run's Ansible and what it started here."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def of_all() -> float:
    """CPU seconds of all processes of this computer (proc_stat(5): user, nice, system)."""
    _, *ticks = Path("/proc/stat").read_text().split()[:4]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def turn(machines: int) -> Turn:
    """Two runs over that many new machines."""
    with tempfile.TemporaryDirectory(prefix="gl") as folder:
        if reason := lacking(Path(folder), machines):
            sys.exit(reason)
        with fleet(Path(folder), *[A100] * machines) as found:
            return {"first": run(found[0]), "second": run(found[0])}


def measured(numbers: Sequence[int], rounds: int) -> dict[int, list[Turn]]:
    """For each number of machines its turns: in every round as many as take all machines of the greatest number."""
    turns: dict[int, list[Turn]] = {number: [] for number in numbers}
    again = [number for number in numbers for _ in range(max(numbers) // number - 1)]
    for each, number in product(range(1, rounds + 1), [*numbers, *again]):
        turns[number].append(told := turn(number))
        seconds = ", ".join(f"{name} run {figures['seconds']:.0f} s" for name, figures in told.items())
        print(f"round {each} of {rounds}: {number} machines, {seconds}", file=sys.stderr, flush=True)
    return turns


def least(turns: Sequence[Turn]) -> Turn:
    """The least of each figure; of what changed the most."""
    picks = {"seconds": min, "cpu_seconds_of_control": min, "cpu_seconds_of_machine": min, "changed": max}
    return {
        name: {figure: pick(each[name][figure] for each in turns) for figure, pick in picks.items()}
        for name in ("first", "second")
    }


def rows(turns: dict[int, list[Turn]]) -> Iterator[tuple[str, str, str, bool]]:
    """What was measured, the goal, the figure, and whether it is reached."""
    for machines, runs in ((number, least(each)) for number, each in turns.items()):
        first, second = runs["first"], runs["second"]
        ratio, changed = second["seconds"] / first["seconds"], second["changed"]
        seen = f"{ratio:.2f} ({second['seconds']:.0f} / {first['seconds']:.0f} s), changed={changed:.0f}"
        goal = f"≤ {SECOND_RUN_MOST}, changed=0"
        yield f"{machines} machines, second / first run", goal, seen, ratio <= SECOND_RUN_MOST and changed == 0
        for name, told in runs.items():
            control, own = told["cpu_seconds_of_control"], told["cpu_seconds_of_machine"]
            seen = f"control side {control:.1f}, the machine itself {own:.1f}"
            yield f"{machines} machines, {name} run, CPU seconds each", "-", seen, True
    few, many = min(turns), max(turns)
    if few != many:
        short, long = ([each["first"]["seconds"] for each in turns[number]] for number in (few, many))
        parts, limit = many // few, TWICE_THE_MACHINES_MOST
        alike = min(sum(short[i : i + parts]) for i in range(0, len(short), parts))
        ratio, single = parts * min(long) / alike, min(long) / min(short)
        seen = f"{ratio:.2f} ({min(long):.0f} s, {parts} × {few} {alike:.0f} s; of the least single runs {single:.2f})"
        yield f"{many} / {few} machines, first run", f"≤ {limit}", seen, ratio <= limit


def positive(text: str) -> int:
    """At least one, for argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("machines", type=positive, nargs="*", default=[8, 16], metavar="MACHINES", help="8 and 16")
    parser.add_argument("--rounds", type=positive, default=3, metavar="K", help="how many rounds of turns (3)")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    turns = measured(asked.machines, asked.rounds)
    if asked.json:
        print(json.dumps({"turns": turns, "rows": list(rows(turns))}))
    else:
        for what, goal, seen, reached in rows(turns):
            print(f"{what:<41}  {goal:<18}  {seen}{'' if reached else '    MISSED'}")


if __name__ == "__main__":
    main()
