"""Two machines sum numbers over their network, and the counters of their fabric say whether it took the bytes.

A head of another group has no part in it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from gpu_machines import Boot, GpuMachine, Hardware

pytestmark = pytest.mark.drill

ROCE = Hardware(model="t4", gpu="T4", count=0, distribution="debian12", fabric="roce", cards=("mlx5_0",))
HEAD = Hardware(model="t4", gpu="T4", count=0, distribution="debian12")
CARRIED = "/run/standin/carried"


@pytest.fixture(scope="module")
def machines(boot: Boot) -> Iterator[tuple[GpuMachine, ...]]:
    with boot(ROCE, ROCE, HEAD) as found:
        played = found[0].play()
        assert played.code == 0, played.output
        yield found


def measured(machine: GpuMachine) -> str:
    return next(check["detail"] for check in machine.ready["checks"] if check["name"] == "all_reduce")


def test_bytes_that_the_cards_did_not_carry_took_another_network(machines: tuple[GpuMachine, ...]) -> None:
    played = machines[0].play("verify.yml", all_reduce_wanted=True)

    assert played.code != 0
    for machine in machines[:2]:
        assert "MB went over roce: it took another network" in machine.reasons["all_reduce"]
    assert measured(machines[2]).startswith("1 rank")


def test_bytes_that_the_cards_carried_are_counted(machines: tuple[GpuMachine, ...]) -> None:
    """The cards' counters are those of the wire that carries the bytes here, which counts in bytes, not in words."""
    for machine in machines[:2]:
        for way, counter in (("xmit", "tx_bytes"), ("rcv", "rx_bytes")):
            machine.run(f"ln -sf /sys/class/net/eth0/statistics/{counter} {CARRIED}/{way}")

    played = machines[0].play("verify.yml", all_reduce_wanted=True)

    assert played.code == 0, played.output
    for machine in machines[:2]:
        assert measured(machine).startswith("2 ranks")
        assert measured(machine).endswith("MB over roce")


def test_a_node_too_slow_is_told_how_slow(machines: tuple[GpuMachine, ...]) -> None:
    played = machines[0].play("verify.yml", all_reduce_wanted=True, verify_all_reduce_gb_per_s=1e6)

    assert played.code != 0
    assert "GB/s, at least 1000000.0 are asked" in machines[0].reasons["all_reduce"]
