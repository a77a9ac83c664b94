"""What gpu_node.yml costs on machines of the lab: the second run against the first, and 16 machines against 8.

    python tests/bench/lab.py [MACHINES …] [--json]

Machines and control side share this computer's cores. Printed for each number of machines: the seconds of the first
run (everything is installed) and of the second (nothing changes), and the CPU seconds of the control side per machine,
Ansible and its SSH clients, the machines' own work left out.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "lab"))

from gpu_machines import GpuMachine, Hardware, fleet, lacking

A100 = Hardware(model="a100", gpu="A100-SXM4-80GB", count=8, distribution="debian12")
SECOND_RUN_MOST, TWICE_THE_MACHINES_MOST = 0.8, 2.0


def run(machine: GpuMachine) -> dict[str, float]:
    """One run over all machines."""
    before, began = cpu_seconds(), time.monotonic()
    played = machine.play()
    assert played.code == 0, played.output
    return {
        "seconds": round(time.monotonic() - began, 1),
        "cpu_seconds_per_machine": round((cpu_seconds() - before) / len(played.recap), 1),
        "changed": played.changed,
    }


def cpu_seconds() -> float:
    """Of all children that have ended: a run's Ansible and what it started here."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(machines: int) -> dict[str, dict[str, float]]:
    with tempfile.TemporaryDirectory(prefix="gl") as folder:
        if reason := lacking(Path(folder), machines):
            sys.exit(reason)
        with fleet(Path(folder), *[A100] * machines) as found:
            return {"first": run(found[0]), "second": run(found[0])}


def rows(figures: dict[int, dict[str, dict[str, float]]]) -> Iterator[tuple[str, str, str, bool]]:
    """What was measured, the goal, the figure, and whether it is reached."""
    for machines, runs in figures.items():
        first, second = runs["first"], runs["second"]
        ratio, changed = second["seconds"] / first["seconds"], second["changed"]
        seen = f"{ratio:.2f} ({second['seconds']:.0f} / {first['seconds']:.0f} s), changed={changed:.0f}"
        goal = f"≤ {SECOND_RUN_MOST}, changed=0"
        yield f"{machines} machines, second / first run", goal, seen, ratio <= SECOND_RUN_MOST and changed == 0
        for name, told in runs.items():
            seen = f"{told['cpu_seconds_per_machine']:.1f} CPU seconds a machine"
            yield f"{machines} machines, {name} run, control side", "-", seen, True
    few, many = min(figures), max(figures)
    if few != many:
        seconds = [figures[number]["first"]["seconds"] for number in (few, many)]
        ratio, limit = seconds[1] / seconds[0], TWICE_THE_MACHINES_MOST
        yield f"{many} / {few} machines, first run", f"≤ {limit}", f"{ratio:.2f} ({seconds[1]:.0f} s)", ratio <= limit


def main(arguments: list[str]) -> None:
    numbers = [int(word) for word in arguments if word.isdigit()] or [8, 16]
    figures = {number: measured(number) for number in numbers}
    if "--json" in arguments:
        print(json.dumps({"figures": figures, "rows": list(rows(figures))}))
    else:
        for what, goal, seen, reached in rows(figures):
            print(f"{what:<40}  {goal:<18}  {seen}{'' if reached else '    MISSED'}")


if __name__ == "__main__":
    main(sys.argv[1:])
