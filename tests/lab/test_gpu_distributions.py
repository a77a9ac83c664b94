"""GPU nodes on releases that the other tests do not run: a whole Debian 13, and one that calls itself Ubuntu 22.04."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from gpu_machines import Boot, GpuMachine, Hardware

pytestmark = pytest.mark.drill

MACHINES = (
    Hardware(model="h100", gpu="H100-SXM5-80GB", count=8, distribution="debian13"),
    Hardware(model="a100", gpu="A100-SXM4-80GB", count=8, distribution="ubuntu2204"),
)


@pytest.fixture(scope="module")
def nodes(boot: Boot) -> Iterator[tuple[GpuMachine, ...]]:
    with boot(*MACHINES) as found:
        played = found[0].play()
        assert played.code == 0, played.output
        yield found


def test_each_has_the_driver_of_its_release(nodes: tuple[GpuMachine, ...]) -> None:
    versions = [check["detail"] for node in nodes for check in node.ready["checks"] if check["name"] == "versions"]

    assert [node.ready["ready"] for node in nodes] == [True, True], [node.reasons for node in nodes]
    assert [version.split()[0] for version in versions] == ["595.91.07", "580.178.04"]
    assert [node.run(". /etc/os-release; echo $ID $VERSION_ID") for node in nodes] == ["debian 13", "ubuntu 22.04"]
    assert nodes[0].run("apt-get --version").startswith("apt 3.")


def test_what_was_removed_by_hand_comes_back_and_the_next_run_changes_nothing(nodes: tuple[GpuMachine, ...]) -> None:
    for node in nodes:
        node.run("apt-get -qq -y --allow-change-held-packages purge nvidia-fabricmanager")

    healed, after = nodes[0].play(), nodes[0].play()

    assert healed.code == 0, healed.output
    assert (after.code, after.changed) == (0, 0), after.output
    assert [node.ready["ready"] for node in nodes] == [True, True]
