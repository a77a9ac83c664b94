"""How long commands wait, on a clock that only their own waiting moves on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from virtual_clock import VirtualClock

from infra.clouds.machines.plan import MachinesPlan
from infra.evaluate import decide
from infra.handover import Handover
from infra.spec import load
from ops.clouds.base import Cloud, Discovered
from ops.clouds.machines import cloud as machines
from ops.commands import up
from ops.console.phases import Phases
from ops.console.terminal import Screen
from ops.errors import CommandError
from ops.nodes.ssh import NodeState
from ops.project import Project

REPOSITORY = Path(__file__).resolve().parents[3]


def test_a_host_that_does_not_wake_is_an_error_after_the_boot_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stacks").mkdir()
    for file in ("Pulumi.yaml", "stacks/Pulumi.onprem-ib.yaml"):
        shutil.copy(REPOSITORY / file, tmp_path / file)
    plan, clock = decide(load(tmp_path, "onprem-ib")), VirtualClock()
    assert isinstance(plan, MachinesPlan)
    assert plan.power.wake
    monkeypatch.setattr(machines, "_command", lambda *_: None)
    monkeypatch.setattr(machines.ssh, "refused", lambda *_: "no route to host")

    with pytest.raises(CommandError, match="look at its console"):
        machines.Cloud(Project(tmp_path), plan, clock).require_capacity()

    assert machines.BOOT_SECONDS <= clock.now() < machines.BOOT_SECONDS + 2 * machines.BOOT_POLL_SECONDS


def test_spot_capacity_that_does_not_come_is_bought_on_demand_once_and_then_missed(tmp_path: Path) -> None:
    handover, clock, bought = Handover.model_construct(nodes=()), VirtualClock(), []

    class Spot(Cloud):
        def discovered(self, handover: Handover) -> Discovered:
            return Discovered(handover, (NodeState("trainer", "trainer", "", "missing", "3 of 4 nodes"),))

        def fall_back(self) -> list[str]:
            bought.append(clock.now())
            return []

    with pytest.raises(CommandError, match="trainer is missing: 3 of 4 nodes"):
        up._wait_for_nodes(Spot(Project(tmp_path), None), handover, Phases(Screen(), quiet=True), clock)

    assert [up.SPOT_SECONDS < moment < up.SPOT_SECONDS + 2 * up.POLL_SECONDS for moment in bought] == [True]
    assert up.BOOT_SECONDS < clock.now() < up.BOOT_SECONDS + 2 * up.POLL_SECONDS
