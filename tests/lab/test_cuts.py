"""SSH cut in the middle of a random task, on four machines: the next run converges, the one after changes nothing."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
from gpu_machines import Boot, GpuMachine, Hardware

from infra.clouds.local.nodes.site import MACHINE_USER

pytestmark = pytest.mark.drill

T4 = Hardware(model="t4", gpu="T4", count=1, distribution="debian12")
MACHINES, ROUNDS = 4, 5
SEED = 20261121
TASKS = 50  # of the first run on a machine, which has more; each is cut in one of them


@pytest.fixture
def machines(boot: Boot) -> Iterator[tuple[GpuMachine, ...]]:
    with boot(*[T4] * MACHINES) as found:
        yield found


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_after_cuts_a_run_converges_and_the_next_changes_nothing(
    machines: tuple[GpuMachine, ...], round_: int, record_property: Callable[[str, object], None]
) -> None:
    chance = random.Random(SEED + round_)
    record_property("cuts", len(machines))
    for machine in machines:
        task = chance.randint(1, TASKS)
        machine.run(f"python3 /usr/local/lib/standin/standin_cut.py {task} {MACHINE_USER}")

    broken, healed, again = (machines[0].play(gpu_node_at_once=MACHINES) for _ in range(3))

    assert all(counts["unreachable"] == 1 for counts in broken.recap.values()), broken.output
    assert healed.code == 0, healed.output
    assert (again.code, again.changed) == (0, 0), again.output
    assert all(machine.ready["ready"] for machine in machines)
