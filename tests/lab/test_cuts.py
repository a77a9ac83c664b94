"""SSH cut in the middle of gpu_node.yml, on four machines: the next run converges, the one after changes nothing."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator

import pytest
from gpu_machines import GpuMachine, Hardware, fleet, lacking
from ssh_hosts import Played

pytestmark = [pytest.mark.drill, pytest.mark.timeout(3600)]

T4 = Hardware(model="t4", gpu="T4", count=1, distribution="debian12")
MACHINES, ROUNDS = 4, 5
SEED = 20261121
FIRST_RUN_SECONDS = (3.0, 60.0)  # a cut falls somewhere in between, which is anywhere in the run


@pytest.fixture
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[GpuMachine, ...]]:
    folder = tmp_path_factory.mktemp("c")
    if reason := lacking(folder, MACHINES):
        pytest.skip(reason)
    with fleet(folder, *[T4] * MACHINES) as found:
        yield found


def cut(machine: GpuMachine) -> None:
    """Ends every login on the machine, this one too, in the middle of whatever it does: killed, not asked."""
    machine.run('pkill -KILL -f "^sshd: ops"', fails=True)


def with_cuts(machines: tuple[GpuMachine, ...], after_seconds: list[float]) -> Played:
    """A run, in which each machine's SSH is cut once, at its own time."""
    timers = [threading.Timer(after, cut, [each]) for after, each in zip(after_seconds, machines, strict=True)]
    for timer in timers:
        timer.start()
    played = machines[0].play()
    for timer in timers:
        timer.cancel()
        timer.join()
    return played


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_after_cuts_a_run_converges_and_the_next_changes_nothing(machines: tuple[GpuMachine, ...], round_: int) -> None:
    chance = random.Random(SEED + round_)
    moments = [chance.uniform(*FIRST_RUN_SECONDS) for _ in machines]

    began = time.monotonic()
    broken = with_cuts(machines, moments)
    lasted = time.monotonic() - began
    healed = machines[0].play()
    again = machines[0].play()

    assert [counts["unreachable"] for counts in broken.recap.values()].count(1) >= sum(m < lasted for m in moments) // 2
    assert healed.code == 0, healed.output
    assert (again.code, again.changed) == (0, 0), again.output
    assert all(machine.ready["ready"] for machine in machines)
