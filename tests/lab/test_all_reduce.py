"""Two machines sum numbers over their network, and the counters of their fabric say whether it took the bytes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from gpu_machines import Boot, GpuMachine, Hardware

pytestmark = [pytest.mark.drill, pytest.mark.timeout(1800)]

ROCE = Hardware(model="t4", gpu="T4", count=0, distribution="debian12", fabric="roce", cards=("mlx5_0",))
CARRIED = "/run/standin/carried"


@pytest.fixture(scope="module")
def machines(boot: Boot) -> Iterator[tuple[GpuMachine, ...]]:
    with boot(ROCE, ROCE) as found:
        played = found[0].play()
        assert played.code == 0, played.output
        yield found


def test_bytes_that_the_cards_did_not_carry_took_another_network(machines: tuple[GpuMachine, ...]) -> None:
    played = machines[0].play("verify.yml", all_reduce_wanted=True)

    assert played.code != 0
    for machine in machines:
        assert "MB went over roce: it took another network" in machine.reasons["all_reduce"]


def test_bytes_that_the_cards_carried_are_counted(machines: tuple[GpuMachine, ...]) -> None:
    """The cards' counters are those of the wire that carries the bytes here, which counts in bytes, not in words."""
    for machine in machines:
        for way, counter in (("xmit", "tx_bytes"), ("rcv", "rx_bytes")):
            machine.run(f"ln -sf /sys/class/net/eth0/statistics/{counter} {CARRIED}/{way}")

    played = machines[0].play("verify.yml", all_reduce_wanted=True)

    assert played.code == 0, played.output
    for machine in machines:
        told = next(check["detail"] for check in machine.ready["checks"] if check["name"] == "all_reduce")
        assert told.startswith("2 ranks")
        assert told.endswith("MB over roce")


def test_a_node_too_slow_is_told_how_slow(machines: tuple[GpuMachine, ...]) -> None:
    played = machines[0].play("verify.yml", all_reduce_wanted=True, verify_all_reduce_gb_per_s=1e6)

    assert played.code != 0
    assert "GB/s, at least 1000000.0 are asked" in machines[0].reasons["all_reduce"]
